// A table that sorts by its headers. Roles are explicit: a phone shows rows as blocks, and browsers
// then no longer treat them as a table.

import { make } from "./dom.js";

const words = new Intl.Collator("en", { numeric: true });

/**
 * columns: [{ title, value(row), show(row), number, heads }]; `value` is the sort key, `show` returns
 *   text or an element, `heads` marks the column that names a row
 * tell: announces how the table is sorted
 */
export function sortableTable({ caption, columns, rows, tell }) {
  const headers = columns.map(({ title, number }) => {
    const button = make("button", { type: "button" }, title);
    const numeric = number ? { class: "number" } : {};
    return make("th", { role: "columnheader", scope: "col", "aria-sort": "none", ...numeric }, button);
  });
  const body = make("tbody", { role: "rowgroup" });
  const drawn = rows.map((row) => ({ row, element: rowElement(columns, row) }));
  const element = make(
    "table",
    { class: "sentences", role: "table" },
    make("caption", {}, make("span", {}, caption)),
    make("thead", { role: "rowgroup" }, make("tr", { role: "row" }, ...headers)),
    body,
  );
  const place = () => body.append(...drawn.map((one) => one.element));
  const sort = (column) => {
    const order = nextOrder(headers[column], columns[column]);
    const sign = order === "ascending" ? 1 : -1;
    const { value } = columns[column];
    drawn.sort((a, b) => compare(value(a.row), value(b.row), sign));
    place();
    headers.forEach((header, other) => header.setAttribute("aria-sort", other === column ? order : "none"));
    tell(`Sorted by ${columns[column].title}, ${order}.`);
  };
  headers.forEach((header, column) => header.addEventListener("click", () => sort(column)));
  place();
  return { element, rows: () => drawn.map((one) => one.row) };
}

function rowElement(columns, row) {
  const cells = columns.map(({ title, show, number, heads }) => {
    const numeric = number ? { class: "number" } : {};
    const kind = heads ? { role: "rowheader", scope: "row" } : { role: "cell", "data-name": title };
    return make(heads ? "th" : "td", { ...kind, ...numeric }, show(row));
  });
  return make("tr", { role: "row" }, ...cells);
}

function nextOrder(header, { number, first = number ? "descending" : "ascending" }) {
  const other = first === "ascending" ? "descending" : "ascending";
  return header.getAttribute("aria-sort") === first ? other : first;
}

/** Rows without a value come last in both orders. */
function compare(a, b, sign) {
  if (a === null || b === null) return Number(a === null) - Number(b === null);
  return sign * (typeof a === "number" ? a - b : words.compare(a, b));
}
