// Numbers as text.

const NARROW_SPACE = "\u202f";
const MINUS = "\u2212";

export function percent(share) {
  return `${(100 * share).toFixed(1)}${NARROW_SPACE}%`;
}

export function decimal(value, digits = 2) {
  return value.toFixed(digits).replace("-", MINUS);
}

/** With its sign: +3.1, −0.4. */
export function signed(value, digits) {
  return (value < 0 ? "" : "+") + decimal(value, digits);
}

/** 1 line, 2 lines. */
export function count(number, noun) {
  return `${number.toLocaleString("en")} ${noun}${number === 1 ? "" : "s"}`;
}

/** With a capital first letter. */
export function title(text) {
  return text.charAt(0).toUpperCase() + text.slice(1);
}

/** a, b and c. */
export function enumerate(items) {
  return items.length < 2 ? items.join("") : `${items.slice(0, -1).join(", ")} and ${items.at(-1)}`;
}
