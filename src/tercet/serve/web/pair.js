// Tab: two sentences, by both modes.

import { find, make } from "./dom.js";
import { decimal } from "./format.js";
import { startJob } from "./job.js";
import { Prediction } from "./prediction.js";
import { dot } from "./vectors.js";
import { taskTitle } from "./wording.js";

const MODES = { bi: "vectors compared", cross: "both read together" };

/** tasks: those that read two sentences */
export function startPair(panel, server, tasks) {
  const results = find(".results", panel);
  startJob(find("form", panel), async (watch) => {
    const fields = [...panel.querySelectorAll("textarea")];
    const pair = fields.map((field) => field.value.trim().replace(/\s+/g, " "));
    const empty = pair.indexOf("");
    if (empty >= 0) {
      fields[empty].focus();
      return "Enter both sentences first.";
    }
    const rows = [];
    for (const task of tasks) {
      rows.push(make("h3", {}, taskTitle(task)), await inEveryMode(task, pair, { server, watch }));
      results.replaceChildren(...rows);
    }
    rows.push(...(await cosine(pair, { server, watch })));
    results.replaceChildren(...rows);
    return "Compared.";
  });
}

async function inEveryMode(task, pair, { server, watch }) {
  const cells = [];
  for (const mode of task.modes) {
    const prediction = new Prediction(task, pair, mode);
    const [found, ...without] = await server.predict(task, [pair, ...prediction.inputs()], { mode, watch });
    const heading = make("h4", {}, mode, make("span", {}, `: ${MODES[mode]}`));
    cells.push(make("div", { class: "mode" }, heading, ...prediction.show(found)));
    prediction.explain(without);
  }
  return make("div", { class: "modes" }, ...cells);
}

async function cosine(pair, { server, watch }) {
  const [first, second] = await server.embed(pair, { watch });
  return [
    make("h3", {}, "Vectors"),
    make("p", {}, "The cosine of the two vectors is ", make("b", {}, decimal(dot(first, second))), "."),
  ];
}
