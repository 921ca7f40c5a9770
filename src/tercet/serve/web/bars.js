// Predictions as charts: bars for class probabilities, a scale for a grade.

import { make } from "./dom.js";
import { decimal, percent } from "./format.js";

/** Bars with names and percentages; the most likely class is highlighted. */
export function classBars(labels, probabilities) {
  const best = likeliest(probabilities);
  const rows = labels.map((label, place) => {
    const track = make("span", { class: "track", "aria-hidden": "true" }, make("i"));
    track.style.setProperty("--share", `${100 * probabilities[place]}%`);
    return make(
      "li",
      place === best ? { class: "best" } : {},
      make("span", { class: "name", "data-name": label }, label),
      track,
      make("span", { class: "figure" }, percent(probabilities[place])),
    );
  });
  return make("ul", { class: "bars" }, ...rows);
}

/** A grade on its scale from low to high. */
export function gradeScale(grade, [low, high]) {
  const share = Math.min(1, Math.max(0, (grade - low) / (high - low)));
  const track = make("span", { class: "track", "aria-hidden": "true" }, make("i"));
  track.style.setProperty("--share", `${100 * share}%`);
  return make(
    "div",
    { class: "grade" },
    make("p", {}, make("b", {}, decimal(grade)), ` on a scale from ${low} to ${high}`),
    track,
  );
}

export function likeliest(probabilities) {
  return probabilities.indexOf(Math.max(...probabilities));
}
