// What the probabilities of a task decide.

import { likeliest } from "./bars.js";

const EVEN = 0.5;

/** The least probability of each label, where an input may have several; else null. */
export function thresholdsOf({ labels, multi_label: several, thresholds, modes }, mode = null) {
  if (!several) return null;
  // Without a mode the server takes the most accurate, which comes last.
  return thresholds?.[mode ?? modes.at(-1)] ?? labels.map(() => EVEN);
}

/** Whether each class is predicted: the likeliest, or all labels that reach their threshold. */
export function decide(task, probabilities, mode = null) {
  const least = thresholdsOf(task, mode);
  const best = likeliest(probabilities);
  return probabilities.map((value, place) => (least ? value >= least[place] : place === best));
}
