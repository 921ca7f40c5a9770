// One prediction of a task, with the words that support it.

import { classBars, gradeScale, likeliest } from "./bars.js";
import { make } from "./dom.js";
import { explained, withoutEach } from "./words.js";

const LEAST = 0.01;
const FULL = 0.1;

/**
 * task: { name, labels, range }, either labels or range
 * texts: the sentence, or the two of a pair
 */
export class Prediction {
  constructor(task, texts) {
    this.task = task;
    this.texts = texts;
    this.lines = make("div", {}, ...texts.map((text) => make("p", { class: "shaded" }, text)));
    this.words = make("div", { class: "words" }, make("p", { class: "summary" }, "Removing each word in turn."));
  }

  /** found: probabilities of the classes, or a grade */
  show(found) {
    const { labels, range } = this.task;
    this.found = found;
    return [this.lines, labels ? classBars(labels, found) : gradeScale(found, range), this.words];
  }

  /** The inputs without one word each, as lists of texts. */
  inputs() {
    return this.texts.flatMap((text, side) =>
      withoutEach(text).map((shorter) => this.texts.with(side, shorter)),
    );
  }

  /** found: what is predicted for each of `inputs()` */
  explain(found) {
    const changes = found.map((one) => this.#figure(this.found) - this.#figure(one));
    const parts = this.texts.map((text) => changes.splice(0, withoutEach(text).length));
    const { lines, notes } = explained(this.texts, parts, measureOf(this.task));
    this.lines.replaceChildren(...lines);
    this.words.replaceChildren(...notes);
  }

  #figure(found) {
    return this.task.labels ? found[likeliest(this.found)] : found;
  }
}

function measureOf({ labels, range }) {
  if (labels) {
    return { scale: 100, digits: 1, least: LEAST, full: FULL, unit: "percentage points", up: "Supported by", down: "Weakened by" };
  }
  const width = range[1] - range[0];
  return { scale: 1, digits: 2, least: LEAST * width, full: FULL * width, unit: "grades", up: "Raised by", down: "Lowered by" };
}
