// Sentences as points on a plane. One stop for the Tab key; arrow keys move between points.

import { make, makeSvg } from "./dom.js";
import { percent } from "./format.js";

const WIDTH = 560;
const HEIGHT = 400;
const MARGIN = 26;
const CROWD = 200;
// One per group, so that groups differ not only in colour.
const SHAPES = [
  "M0 7L6.5-5H-6.5Z",
  "M-5-5H5V5H-5Z",
  "M0-6A6 6 0 1 1 0 6A6 6 0 1 1 0-6Z",
  "M0-7L7 0L0 7L-7 0Z",
  "M0-7L6.5 5H-6.5Z",
  "M-2-6H2V-2H6V2H2V6H-2V2H-6V-2H-2Z",
];
const STEPS = { ArrowRight: [0, 1], ArrowLeft: [0, -1], ArrowUp: [1, 1], ArrowDown: [1, -1] };

/**
 * points: [{ text, note, place: [x, y], group }], group a number into groups
 * groups: the names of classes
 * ordered: whether classes go from one end to another
 */
export function sentenceMap({ points, groups, shares, ordered }) {
  const line = make("p", { class: "pointed" }, "Point at a mark, or use the arrow keys, to read its sentence.");
  const spots = fit(points.map(({ place }) => place));
  const marks = points.map((point, number) => pointMark(point, spots[number], { groups: groups.length, ordered }));
  // Drawn last, so that no other mark covers it.
  const ring = makeSvg("circle", { class: "ring", r: 10, "aria-hidden": "true" });
  const plane = makeSvg(
    "svg",
    {
      viewBox: `0 0 ${WIDTH} ${HEIGHT}`,
      role: "group",
      class: points.length > CROWD ? "crowded" : "",
      "aria-label": `Map of ${points.length} sentences; arrow keys move between them`,
    },
    ...marks,
    ring,
  );
  const show = (number) => {
    marks.forEach((mark, other) => mark.setAttribute("tabindex", other === number ? "0" : "-1"));
    ring.setAttribute("transform", marks[number].getAttribute("transform"));
    ring.classList.add("shown");
    const { text, note } = points[number];
    line.replaceChildren(text, ...(note ? [" ", make("span", { class: "note" }, note)] : []));
  };
  marks[0].setAttribute("tabindex", "0");
  plane.addEventListener("pointermove", (event) => show(nearestSpot(plane, spots, event)));
  plane.addEventListener("click", (event) => show(nearestSpot(plane, spots, event)));
  plane.addEventListener("focusin", (event) => show(marks.indexOf(event.target)));
  walkByArrows(plane, marks, spots);
  const held = `The first two explain ${percent(shares[0] + shares[1])} of the variance.`;
  return make(
    "figure",
    { class: "map" },
    make("div", { class: "plane" }, plane),
    line,
    ...legend(groups, ordered),
    make("figcaption", {}, `Principal components of the vectors. ${held}`),
  );
}

function pointMark({ text, note, group }, [x, y], { groups, ordered }) {
  return makeSvg(
    "g",
    {
      class: "point",
      transform: `translate(${x.toFixed(1)} ${y.toFixed(1)})`,
      tabindex: "-1",
      role: "img",
      "aria-label": note ? `${text} (${note})` : text,
    },
    shapeOf(group, groups, ordered),
  );
}

/** One shape per class; colours of ordered classes go from the first over grey to the last. */
function shapeOf(group, groups, ordered) {
  const shape = makeSvg("path", { d: SHAPES[group % SHAPES.length] });
  if (!ordered) {
    shape.style.setProperty("--end", `var(--g${group % SHAPES.length})`);
    shape.style.setProperty("--far", "100%");
    return shape;
  }
  const far = groups > 1 ? (2 * group) / (groups - 1) - 1 : 1;
  shape.style.setProperty("--end", far < 0 ? "var(--against)" : "var(--accent)");
  shape.style.setProperty("--far", `${Math.round(100 * Math.abs(far))}%`);
  return shape;
}

/** One scale for both axes, so that distances are comparable. */
function fit(places) {
  const spans = [0, 1].map((axis) => {
    const values = places.map((place) => place[axis]);
    return [Math.min(...values), Math.max(...values)];
  });
  const [wide, high] = spans.map(([low, top]) => top - low || 1e-9);
  const scale = Math.min((WIDTH - 2 * MARGIN) / wide, (HEIGHT - 2 * MARGIN) / high);
  const middle = spans.map(([low, top]) => (low + top) / 2);
  return places.map(([x, y]) => [
    WIDTH / 2 + (x - middle[0]) * scale,
    HEIGHT / 2 - (y - middle[1]) * scale,
  ]);
}

function nearestSpot(plane, spots, event) {
  const at = new DOMPoint(event.clientX, event.clientY).matrixTransform(plane.getScreenCTM().inverse());
  const away = spots.map(([x, y]) => Math.hypot(x - at.x, y - at.y));
  return away.indexOf(Math.min(...away));
}

/** Left and right follow the horizontal order, up and down the vertical one. */
function walkByArrows(plane, marks, spots) {
  const order = [(number) => spots[number][0], (number) => -spots[number][1]].map((key) =>
    marks.map((_, number) => number).sort((a, b) => key(a) - key(b) || a - b),
  );
  plane.addEventListener("keydown", (event) => {
    const here = marks.indexOf(event.target);
    const next = event.key in STEPS ? step(order, here, STEPS[event.key]) : ends(order, event.key);
    if (next === undefined) return;
    event.preventDefault();
    marks[next].focus();
  });
}

function step(order, here, [axis, by]) {
  return order[axis][order[axis].indexOf(here) + by];
}

function ends(order, key) {
  return { Home: order[0][0], End: order[0].at(-1) }[key];
}

function legend(groups, ordered) {
  if (groups.length === 0) return [];
  const items = groups.map((name, group) => {
    const shape = shapeOf(group, groups.length, ordered);
    return make("li", {}, makeSvg("svg", { viewBox: "-9 -9 18 18", "aria-hidden": "true" }, shape), name);
  });
  return [make("ul", { class: "legend", "aria-label": "Marks" }, ...items)];
}
