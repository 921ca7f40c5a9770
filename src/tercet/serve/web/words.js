// Which words support a prediction: each is removed once, and the change is its share.

import { make } from "./dom.js";
import { enumerate, signed } from "./format.js";

// Letters and digits, also joined by punctuation: well-made, don't, 3.5.
const WORD = /[\p{L}\p{M}\p{N}]+(?:[-'’.,][\p{L}\p{M}\p{N}]+)*/gu;
const NAMED = 3;

/** The words of a text: [{ word, start, end }]. */
export function wordsOf(text) {
  return [...text.matchAll(WORD)].map(({ 0: word, index }) => {
    return { word, start: index, end: index + word.length };
  });
}

/** The text without each of its words in turn; empty for a single word. */
export function withoutEach(text) {
  const words = wordsOf(text);
  if (words.length < 2) return [];
  return words.map(({ start, end }) => {
    return `${text.slice(0, start)}${text.slice(end)}`.replace(/\s+/g, " ").trim();
  });
}

/**
 * Texts whose words are shaded by their parts, and a summary.
 * parts: for each text a list of numbers, one per word, or an empty list
 * measure: { scale, digits, least, full, unit, up, down }, how parts are shown
 */
export function explained(texts, parts, measure) {
  const most = Math.max(measure.full, ...parts.flat().map(Math.abs));
  const lines = texts.map((text, side) => shaded(text, parts[side], measure, most));
  const words = texts.flatMap((text, side) =>
    parts[side].map((part, place) => ({ word: wordsOf(text)[place].word, part, side })),
  );
  if (words.length === 0) return { lines, notes: [sentence("There is no other word to remove.")] };
  const inBrackets = figureOf(texts.length > 1, measure);
  const large = words.filter(({ part }) => Math.abs(part) >= measure.least);
  const name = (word) => `“${word.word}” ${inBrackets(word)}`;
  const every = words.map((word) => make("li", {}, `${word.word} ${inBrackets(word)}`));
  return { lines, notes: [sentence(summary(large, measure, name)), everyWord(every, measure)] };
}

/** How a word's part is shown; in a pair, with its sentence. */
function figureOf(ofPair, { scale, digits }) {
  return ({ part, side }) => {
    const where = ofPair ? `${["first", "second"][side]}, ` : "";
    return `(${where}${signed(part * scale, digits)})`;
  };
}

function sentence(text) {
  return make("p", { class: "summary" }, text);
}

function shaded(text, parts, measure, most) {
  const line = make("p", { class: "shaded" });
  let done = 0;
  wordsOf(text).forEach(({ word, start, end }, place) => {
    const part = parts[place] ?? 0;
    const mark = Math.abs(part) < measure.least ? word : shadedWord(word, part, most);
    line.append(text.slice(done, start), mark);
    done = end;
  });
  line.append(text.slice(done));
  return line;
}

function shadedWord(word, part, most) {
  const mark = make("span", { class: part > 0 ? "word" : "word against" }, word);
  mark.style.setProperty("--strength", `${Math.round((100 * Math.abs(part)) / most)}%`);
  return mark;
}

function summary(words, measure, name) {
  const ranked = words.toSorted((a, b) => Math.abs(b.part) - Math.abs(a.part));
  const list = (some) => enumerate(some.slice(0, NAMED).map(name));
  const up = ranked.filter(({ part }) => part > 0);
  const down = ranked.filter(({ part }) => part < 0);
  const sentences = [];
  if (up.length > 0) sentences.push(`${measure.up} ${list(up)}.`);
  if (down.length > 0) sentences.push(`${measure.down} ${list(down)}.`);
  return sentences.join(" ") || "No single word makes a difference.";
}

function everyWord(items, measure) {
  return make(
    "details",
    { class: "every" },
    make("summary", {}, "All words"),
    make("p", {}, `Loss, in ${measure.unit}, without the word:`),
    make("ul", {}, ...items),
  );
}
