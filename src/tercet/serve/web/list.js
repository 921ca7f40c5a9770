// Tab: a list as a sortable table, its closest pairs, and a map.

import { labelSet, likeliest } from "./bars.js";
import { download, toCsv } from "./csv.js";
import { decide } from "./decision.js";
import { find, make } from "./dom.js";
import { count, decimal, percent } from "./format.js";
import { startJob } from "./job.js";
import { linesOf } from "./lines.js";
import { sentenceMap } from "./map.js";
import { sortableTable } from "./table.js";
import { neighbours, plane } from "./vectors.js";
import { Refused } from "./server.js";
import { isOrdered, taskTitle } from "./wording.js";

const MOST = 2000;
const PAIRS = 10;
const DIGITS = 6;

/** tasks: those that read one sentence */
export function startList(panel, server, tasks) {
  const results = find(".results", panel);
  startJob(find("form", panel), async (watch) => {
    const texts = linesOf(find("textarea", panel));
    if (texts.length === 0) return "Enter some lines first.";
    if (texts.length > MOST) throw new Refused(`This tab reads up to ${MOST} lines, and there are ${texts.length}.`);
    const vectors = await server.embed(texts, { watch });
    const found = [];
    for (const task of tasks) found.push(await server.predict(task, texts, { watch }));
    const { nearest, closest } = await neighbours(vectors, { pairs: PAIRS, signal: watch.signal });
    const rows = texts.map((text, place) => {
      return { number: place + 1, text, found: found.map((each) => each[place]), nearest: nearest[place] };
    });
    const sights = [];
    if (texts.length > 2) sights.push(mapPart(rows, vectors, tasks));
    if (texts.length > 1) sights.push(pairsPart(closest, texts));
    results.replaceChildren(make("div", { class: "sights" }, ...sights), tablePart(rows, texts, tasks, watch.say));
    return `${count(texts.length, "line")} analysed.`;
  });
}

function tablePart(rows, texts, tasks, tell) {
  const columns = [
    { title: "Line", value: ({ number }) => number, show: ({ number }) => String(number), number: true, first: "ascending" },
    { title: "Sentence", value: ({ text }) => text, show: ({ text }) => text, heads: true },
    ...tasks.map(taskColumn),
    ...nearestColumns(texts),
  ];
  const table = sortableTable({ caption: "All lines. Select a header to sort by its column.", columns, rows, tell });
  const save = make("button", { type: "button", class: "plain" }, "Download CSV");
  save.addEventListener("click", () => download("tercet.csv", csvOf(table.rows(), texts, tasks)));
  const heading = make("div", { class: "above" }, make("h3", {}, "Lines"), save);
  return make("section", {}, heading, table.element);
}

/** Classes sort by their order, then by probability; sets of labels by their names. */
function taskColumn(task, place) {
  const { labels, multi_label: several } = task;
  const heading = taskTitle(task);
  const found = (row) => row.found[place];
  if (!labels) return { title: heading, number: true, value: found, show: (row) => decimal(found(row)) };
  if (several) {
    const names = (row) => labelSet(labels, decide(task, found(row)));
    return { title: heading, value: names, show: names };
  }
  const sure = (row) => Math.max(...found(row));
  return {
    title: heading,
    first: "descending",
    value: (row) => likeliest(found(row)) + sure(row),
    show: (row) => make("span", {}, labels[likeliest(found(row))], make("span", { class: "note" }, percent(sure(row)))),
  };
}

function nearestColumns(texts) {
  const exists = ({ nearest }) => nearest.place >= 0;
  const text = ({ nearest }) => `${nearest.place + 1}. ${texts[nearest.place]}`;
  const cosine = ({ nearest }) => nearest.cosine;
  const where = (get) => (row) => (exists(row) ? get(row) : null);
  return [
    { title: "Nearest other line", value: where(({ nearest }) => texts[nearest.place]), show: (row) => where(text)(row) ?? "" },
    { title: "Cosine", value: where(cosine), show: (row) => (exists(row) ? decimal(cosine(row)) : ""), number: true },
  ];
}

function figure(value) {
  return value.toFixed(DIGITS);
}

function csvOf(rows, texts, tasks) {
  const header = tasks.flatMap(({ name, labels, multi_label: several }) => {
    if (several) return [name, ...labels.map((label) => `${name} ${label} probability`)];
    return labels ? [name, `${name} probability`] : [name];
  });
  const predicted = ({ found }) =>
    tasks.flatMap((task, place) => {
      const { labels, multi_label: several } = task;
      if (several) return [labelSet(labels, decide(task, found[place])), ...found[place].map(figure)];
      return labels ? [labels[likeliest(found[place])], figure(Math.max(...found[place]))] : [figure(found[place])];
    });
  const near = ({ nearest: { place, cosine } }) => (place < 0 ? ["", "", ""] : [place + 1, texts[place], figure(cosine)]);
  return toCsv(
    ["line", "sentence", ...header, "nearest line", "nearest sentence", "cosine"],
    rows.map((row) => [row.number, row.text, ...predicted(row), ...near(row)]),
  );
}

function pairsPart(closest, texts) {
  const line = (place) => make("p", {}, `${place + 1}. ${texts[place]}`);
  const rows = closest.map(({ first, second, cosine }) =>
    make("tr", {}, make("td", { class: "number" }, decimal(cosine)), make("td", {}, line(first), line(second))),
  );
  const headers = [["Cosine", { class: "number" }], ["Lines", {}]];
  const table = make(
    "table",
    { class: "pairs" },
    make("caption", {}, `The ${count(closest.length, "pair")} with the closest vectors.`),
    make("thead", {}, make("tr", {}, ...headers.map(([name, kind]) => make("th", { scope: "col", ...kind }, name)))),
    make("tbody", {}, ...rows),
  );
  return make("section", {}, make("h3", {}, "Closest pairs"), table);
}

function mapPart(rows, vectors, tasks) {
  const task = tasks.findIndex(({ labels, multi_label: several }) => labels && !several);
  const labels = task < 0 ? [] : tasks[task].labels;
  const { places, shares } = plane(vectors);
  const points = rows.map(({ number, text, found }, place) => {
    const group = task < 0 ? 0 : likeliest(found[task]);
    const note = `line ${number}${task < 0 ? "" : `, ${labels[group]}`}`;
    return { text, note, group, place: places[place] };
  });
  return make("section", {}, make("h3", {}, "Map"), sentenceMap({ points, groups: labels, shares, ordered: isOrdered(tasks[task]) }));
}
