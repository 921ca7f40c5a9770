// Tab: sentences, their predictions, and the words that support them.

import { find, make } from "./dom.js";
import { count } from "./format.js";
import { startJob } from "./job.js";
import { linesOf } from "./lines.js";
import { Prediction } from "./prediction.js";
import { Refused } from "./server.js";
import { taskTitle } from "./wording.js";

const MOST = 100;

/** tasks: those that read one sentence */
export function startSentences(panel, server, tasks) {
  const results = find(".results", panel);
  startJob(find("form", panel), async (watch) => {
    const texts = linesOf(find("textarea", panel));
    if (texts.length === 0) return "Enter a sentence first.";
    if (texts.length > MOST) throw new Refused(`This tab reads up to ${MOST} lines; for ${texts.length}, use List.`);
    const answers = texts.map(() => make("article", { class: "answer" }));
    for (const task of tasks) await predict(task, texts, { server, watch, draw });
    return `${count(texts.length, "sentence")} ${tasks.some(({ labels }) => labels) ? "classified" : "graded"}.`;

    function draw(task, place, elements) {
      const heading = tasks.length > 1 ? [make("h3", {}, taskTitle(task))] : [];
      answers[place].append(...heading, ...elements);
      results.replaceChildren(...answers);
    }
  });
}

async function predict(task, texts, { server, watch, draw }) {
  const predictions = texts.map((text) => new Prediction(task, [text]));
  const found = await server.predict(task, texts, { watch });
  predictions.forEach((prediction, place) => draw(task, place, prediction.show(found[place])));
  const inputs = predictions.map((prediction) => prediction.inputs().flat());
  const without = await server.predict(task, inputs.flat(), { watch });
  predictions.forEach((prediction, place) => prediction.explain(without.splice(0, inputs[place].length)));
}
