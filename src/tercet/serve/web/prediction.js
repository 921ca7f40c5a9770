// One prediction of a task, with the words that support it.

import { classBars, gradeScale, labelSet, likeliest } from "./bars.js";
import { decide, thresholdsOf } from "./decision.js";
import { make } from "./dom.js";
import { title } from "./format.js";
import { explained, withoutEach } from "./words.js";

const LEAST = 0.01;
const FULL = 0.1;

/**
 * task: as the server describes it, with labels or range
 * texts: the sentence, or the two of a pair
 * mode: the one that predicts; default: the server's choice
 */
export class Prediction {
  constructor(task, texts, mode = null) {
    this.task = task;
    this.texts = texts;
    this.mode = mode;
    this.lines = make("div", {}, ...texts.map((text) => make("p", { class: "shaded" }, text)));
    this.words = make("div", { class: "words" }, make("p", { class: "summary" }, "Removing each word in turn."));
  }

  /** found: probabilities of the classes, or a grade */
  show(found) {
    this.found = found;
    return [this.lines, ...this.#chart(found), this.words];
  }

  #chart(found) {
    const { labels, range } = this.task;
    if (!labels) return [gradeScale(found, range)];
    const chosen = decide(this.task, found, this.mode);
    const thresholds = thresholdsOf(this.task, this.mode);
    const bars = classBars(labels, found, { chosen, thresholds });
    if (!thresholds) return bars;
    const names = make("b", {}, labelSet(labels, chosen));
    const note = make("span", { class: "note" }, "(bars that reach their mark)");
    return [make("p", { class: "set" }, "Labels: ", names, note), ...bars];
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
    const { lines, notes } = explained(this.texts, parts, measureOf(this.task, this.found));
    this.lines.replaceChildren(...lines);
    this.words.replaceChildren(...notes);
  }

  #figure(found) {
    return this.task.labels ? found[likeliest(this.found)] : found;
  }
}

function measureOf({ labels, range, multi_label: several }, found) {
  if (labels) {
    const what = several ? `“${labels[likeliest(found)]}” is ` : "";
    const [up, down] = ["supported by", "weakened by"].map((how) => (what ? what + how : title(how)));
    return { scale: 100, digits: 1, least: LEAST, full: FULL, unit: "percentage points", up, down };
  }
  const width = range ? range[1] - range[0] : 1;
  return { scale: 1, digits: 2, least: LEAST * width, full: FULL * width, unit: "grades", up: "Raised by", down: "Lowered by" };
}
