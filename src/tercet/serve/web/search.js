// Tab: the nearest sentences of an index.

import { find, make } from "./dom.js";
import { count, decimal } from "./format.js";
import { startJob } from "./job.js";

const TOP = 10;

export function startSearch(panel, server) {
  const results = find(".results", panel);
  const field = find("input", panel);
  startJob(find("form", panel), async (watch) => {
    const query = field.value.trim();
    if (query === "") {
      field.focus();
      return "Enter a query first.";
    }
    const found = await server.search(query, { top: TOP, watch });
    results.replaceChildren(make("ol", { class: "found" }, ...found.map(hit)));
    return `${count(found.length, "sentence")} found.`;
  });
}

function hit({ text, score, id, ...columns }) {
  const others = Object.entries(columns).map(([name, value]) => `${name} ${value}`);
  const note = make("span", { class: "note" }, [`id ${id}`, ...others].join(", "));
  return make("li", {}, make("b", {}, decimal(score)), make("div", {}, make("p", {}, text), note));
}
