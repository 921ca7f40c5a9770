// What a tab is called and says of its tasks, in the words of the model's own tasks.

import { make } from "./dom.js";
import { enumerate, title } from "./format.js";

const LONGEST_TAB = 20;
const MOST_CLASSES = 8;

/** The names of tasks, for a tab; `short` where they are too many. */
export function tabName(tasks, short) {
  const names = namesOf(tasks);
  return tasks.length > 0 && names.length <= LONGEST_TAB ? names : short;
}

/** The names of tasks, for a heading. */
export function namesOf(tasks) {
  return title(enumerate(tasks.map(({ name }) => spaced(name))));
}

/** One task's name as a heading. */
export function taskTitle({ name }) {
  return title(spaced(name));
}

/** Whether the classes of a task, if any, are known to go from one end to another. */
export function isOrdered(task) {
  return task?.name === "sentiment";
}

/** What each task predicts: a list item each. */
export function taskLines(tasks) {
  return tasks.map((task) => {
    const named = tasks.length > 1 ? [make("b", {}, spaced(task.name)), ": "] : [];
    return make("li", {}, ...named, predicts(task));
  });
}

function predicts({ labels, range, multi_label: several }) {
  if (labels?.length === 2 && !several) return labels.join(" or ");
  if (labels) return `${several ? "any of" : "one of"} ${classList(labels)}`;
  return range ? `a grade from ${range[0]} to ${range[1]}` : "a number";
}

function classList(labels) {
  if (labels.length <= MOST_CLASSES + 1) return labels.join(", ");
  return `${labels.slice(0, MOST_CLASSES).join(", ")} and ${labels.length - MOST_CLASSES} more`;
}

/** Names of tasks are keys such as `same_question`. */
function spaced(name) {
  return name.replaceAll("_", " ");
}
