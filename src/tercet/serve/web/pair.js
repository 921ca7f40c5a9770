// Tab: two sentences, in both gears side by side.

import { find, make } from "./dom.js";
import { decimal, title } from "./format.js";
import { startJob } from "./job.js";
import { Prediction } from "./prediction.js";
import { dot } from "./vectors.js";

const GEARS = { bi: "each read alone, vectors compared", cross: "both read together" };

/** tasks: those that read two sentences */
export function startPair(panel, server, tasks) {
  const results = find(".results", panel);
  startJob(find("form", panel), async (watch) => {
    const fields = [...panel.querySelectorAll("textarea")];
    const pair = fields.map((field) => field.value.trim().replace(/\s+/g, " "));
    const empty = pair.indexOf("");
    if (empty >= 0) {
      fields[empty].focus();
      return "Write both sentences first.";
    }
    const rows = [];
    for (const task of tasks) {
      rows.push(make("h3", {}, title(task.name)), await inEveryGear(task, pair, { server, watch }));
      results.replaceChildren(...rows);
    }
    rows.push(...(await cosine(pair, { server, watch })));
    results.replaceChildren(...rows);
    return "Compared.";
  });
}

async function inEveryGear(task, pair, { server, watch }) {
  const cells = [];
  for (const gear of task.gears) {
    const prediction = new Prediction(task, pair);
    const [found, ...without] = await server.predict(task, [pair, ...prediction.inputs()], { gear, watch });
    const heading = make("h4", {}, gear, make("span", {}, `: ${GEARS[gear]}`));
    cells.push(make("div", { class: "gear" }, heading, ...prediction.show(found)));
    prediction.explain(without);
  }
  return make("div", { class: "gears" }, ...cells);
}

async function cosine(pair, { server, watch }) {
  const [first, second] = await server.embed(pair, { watch });
  return [
    make("h3", {}, "Vectors"),
    make("p", {}, "The cosine of the two vectors is ", make("b", {}, decimal(dot(first, second))), "."),
  ];
}
