// Predictions as charts: bars for class probabilities, a scale for a grade.

import { make } from "./dom.js";
import { decimal, percent } from "./format.js";

const MOST = 10;
const FIRST = 6;

/**
 * Bars with names and percentages.
 * labels: all classes; where there are many, the most likely come first and the others are folded
 * chosen: whether each class is predicted
 * thresholds: where an input may have several labels, the least probability of each; else null
 */
export function classBars(labels, probabilities, { chosen, thresholds }) {
  const places = labels.map((_, place) => place);
  const bar = (place) =>
    classBar(labels[place], probabilities[place], { isChosen: chosen[place], threshold: thresholds?.[place] });
  const bars = (some) => make("ul", { class: thresholds ? "bars several" : "bars" }, ...some.map(bar));
  if (labels.length <= MOST) return [bars(places)];
  const ranked = places.toSorted((a, b) => probabilities[b] - probabilities[a]);
  const rest = ranked.slice(FIRST);
  const folded = make("summary", {}, `${rest.length} more classes`);
  return [bars(ranked.slice(0, FIRST)), make("details", { class: "every" }, folded, bars(rest))];
}

function classBar(label, probability, { isChosen, threshold }) {
  const mark = threshold === undefined ? [] : [make("b")];
  const track = make("span", { class: "track", "aria-hidden": "true" }, make("i"), ...mark);
  track.style.setProperty("--share", `${100 * probability}%`);
  if (threshold !== undefined) track.style.setProperty("--threshold", `${100 * threshold}%`);
  return make(
    "li",
    isChosen ? { class: "best" } : {},
    make("span", { class: "name", "data-name": label }, label),
    track,
    make("span", { class: "figure" }, percent(probability)),
  );
}

/** The predicted labels in words, where there may be several. */
export function labelSet(labels, chosen) {
  const names = labels.filter((_, place) => chosen[place]);
  return names.length > 0 ? names.join(", ") : "none";
}

/** A grade on its scale from low to high; a task without a range has no scale. */
export function gradeScale(grade, range) {
  if (!range) return make("div", { class: "grade" }, make("p", {}, make("b", {}, decimal(grade))));
  const [low, high] = range;
  const share = Math.min(1, Math.max(0, (grade - low) / (high - low)));
  const track = make("span", { class: "track", "aria-hidden": "true" }, make("i"));
  track.style.setProperty("--share", `${100 * share}%`);
  const ends = make("p", { class: "ends", "aria-hidden": "true" }, make("span", {}, String(low)), make("span", {}, String(high)));
  return make(
    "div",
    { class: "grade" },
    make("p", {}, make("b", {}, decimal(grade)), ` on a scale from ${low} to ${high}`),
    track,
    ends,
  );
}

export function likeliest(probabilities) {
  return probabilities.indexOf(Math.max(...probabilities));
}
