"use strict";

const status = document.getElementById("status");
const words = new Intl.Collator("en", { numeric: true });

function sortValue(row, column, number) {
  const cell = row.cells[column];
  if (!number) return cell.textContent.trim();
  return cell.dataset.sort === undefined ? NaN : Number(cell.dataset.sort);
}

function compare(a, b, number) {
  if (!number) return words.compare(a, b);
  return a - b;
}

function sortBy(table, column) {
  const headers = [...table.tHead.rows[0].cells];
  const header = headers[column];
  const body = table.tBodies[0];
  const number = [...body.rows].some((row) => row.cells[column].dataset.sort !== undefined);
  const first = number ? "descending" : "ascending";
  const other = number ? "ascending" : "descending";
  const order = header.getAttribute("aria-sort") === first ? other : first;
  const sign = order === "ascending" ? 1 : -1;
  const keyed = [...body.rows].map((row) => [sortValue(row, column, number), row]);
  // Cells without a number come last in both orders.
  const absent = ([key]) => Number(number && Number.isNaN(key));
  keyed.sort((a, b) => absent(a) - absent(b) || (absent(a) ? 0 : sign * compare(a[0], b[0], number)));
  body.append(...keyed.map(([, row]) => row));
  headers.forEach((cell) => cell.setAttribute("aria-sort", cell === header ? order : "none"));
  status.textContent = `Sorted by ${header.textContent.trim()}, ${order}.`;
}

for (const table of document.querySelectorAll("table.sortable")) {
  table.tHead.addEventListener("click", (event) => {
    const button = event.target.closest("button");
    if (button) sortBy(table, button.closest("th").cellIndex);
  });
}

function cellText(row, column) {
  const cell = row.cells[column];
  const hidden = cell.querySelector(".unseen");
  return cell.textContent.slice(hidden ? hidden.textContent.length : 0).trim();
}

const FIRST = 12;

function filter(form) {
  const rows = [...form.parentElement.querySelector("table").tBodies[0].rows];
  const chosen = [...form.querySelectorAll("select")].filter((select) => select.value);
  const sought = form.querySelector("input").value.trim().toLowerCase();
  const most = form.dataset.all ? Infinity : FIRST;
  let fitting = 0;
  for (const row of rows) {
    const fits =
      chosen.every((select) => cellText(row, select.dataset.column) === select.value) &&
      row.textContent.toLowerCase().includes(sought);
    fitting += Number(fits);
    row.hidden = !fits || fitting > most;
  }
  const every = rows.length === 1 ? "1 row" : `${rows.length} rows`;
  const count = rows.length === fitting ? every : `${fitting} of ${every}`;
  form.querySelector("output").textContent =
    fitting > most ? `${count}, the first ${most} shown` : count;
  const more = form.querySelector("button");
  more.hidden = fitting <= FIRST;
  more.textContent = form.dataset.all ? `Show the first ${FIRST}` : `Show all ${fitting}`;
}

for (const form of document.querySelectorAll("form.filters")) {
  form.addEventListener("input", () => filter(form));
  form.addEventListener("submit", (event) => event.preventDefault());
  form.querySelector("button").addEventListener("click", () => {
    form.dataset.all = form.dataset.all ? "" : "all";
    filter(form);
  });
  form.parentElement.querySelector("thead").addEventListener("click", () => filter(form));
  form.reset();
  filter(form);
}

for (const map of document.querySelectorAll("figure.map")) {
  const dots = [...map.querySelectorAll(".plane circle")];
  const line = map.querySelector(".pointed");
  const walk = map.querySelector("input");
  // The page shows the sentence itself; the browser's own tooltip would show it twice.
  const sentences = dots.map((dot) => {
    const title = dot.querySelector("title");
    title.remove();
    return title.textContent;
  });
  const show = (place) => {
    dots.forEach((dot, other) => dot.classList.toggle("shown", other === place));
    line.textContent = sentences[place];
    walk.value = place;
    walk.setAttribute("aria-valuetext", sentences[place]);
  };
  const plane = map.querySelector(".plane svg");
  const point = (event) => {
    const at = new DOMPoint(event.clientX, event.clientY).matrixTransform(
      plane.getScreenCTM().inverse(),
    );
    const away = dots.map((dot) => Math.hypot(dot.cx.baseVal.value - at.x, dot.cy.baseVal.value - at.y));
    show(away.indexOf(Math.min(...away)));
  };
  plane.addEventListener("pointermove", point);
  plane.addEventListener("click", point);
  walk.addEventListener("input", () => show(Number(walk.value)));
  walk.addEventListener("focus", () => show(Number(walk.value)));
  walk.closest("p").hidden = dots.length === 0;
}

function markEdges(box) {
  const hidden = box.scrollWidth - box.clientWidth;
  box.classList.toggle("before", box.scrollLeft > 1);
  box.classList.toggle("after", box.scrollLeft < hidden - 1);
}

const sizes = new ResizeObserver((entries) => entries.forEach(({ target }) => markEdges(target)));
for (const box of document.querySelectorAll(".scroll, nav ul")) {
  box.addEventListener("scroll", () => markEdges(box), { passive: true });
  sizes.observe(box);
}
