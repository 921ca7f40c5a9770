// What the text fields hold at first: the model's own examples, or sentences that fit its tasks.

const FILMS = [
  "I loved every minute of it.",
  "The film is slow, but it is beautiful.",
  "It is neither good nor bad.",
  "The jokes fall flat and the ending makes no sense.",
];
const QUESTIONS = ["How can I learn the piano quickly?", "What is the fastest way to learn the piano?"];
const HOTEL = [
  "The room was clean and the bed was soft.",
  "Our room was spotless, and we slept well.",
  "The shower was cold every single morning.",
  "There was no hot water in the bathroom.",
  "Breakfast was fresh and there was plenty of it.",
  "We loved the bread and the coffee at breakfast.",
  "The staff at the desk were rude to my mother.",
  "Nobody at reception would help us with the bags.",
  "The station is ten minutes away on foot.",
  "It is a short walk from the train.",
  "The music from the bar kept us awake until three.",
  "I would come back tomorrow.",
];
// For tasks that this page knows nothing about.
const PLAIN = [
  "The meeting has moved to Thursday morning.",
  "We now meet on Thursday, before noon.",
  "Please send me a copy of the invoice.",
  "Can I get the invoice once more?",
  "The new version starts faster than the old one.",
  "Since the update it opens much more quickly.",
  "I forgot my password and cannot log in.",
  "How do I sign in without my password?",
  "The parcel arrived two days late.",
  "It rained all weekend, so we stayed at home.",
  "Who is responsible for the new office?",
  "Thank you, that answers my question.",
];
const BUILT_IN = { sentiment: FILMS };
const BUILT_IN_PAIRS = { paraphrase: QUESTIONS, similarity: QUESTIONS };
const SHOWN = 4;

/** Texts for tasks that read one text. */
export function exampleTexts(tasks) {
  const own = ownTexts(tasks);
  if (own.length > 0) return own;
  return builtIn(tasks, BUILT_IN) ?? PLAIN.filter((_, place) => place % 2 === 0).slice(0, SHOWN);
}

/** Two texts for tasks that read pairs. */
export function examplePair(tasks) {
  const own = tasks.flatMap(({ examples }) => examples ?? []);
  return own[0] ?? builtIn(tasks, BUILT_IN_PAIRS) ?? (tasks.length > 0 ? PLAIN.slice(0, 2) : QUESTIONS);
}

/** A list to explore. */
export function exampleList(tasks) {
  if (tasks.length === 0 || builtIn(tasks, BUILT_IN)) return HOTEL;
  return [...ownTexts(tasks), ...PLAIN].slice(0, PLAIN.length);
}

function ownTexts(tasks) {
  return [...new Set(tasks.flatMap(({ examples }) => examples ?? []).map((text) => text.replace(/\s+/g, " ")))];
}

function builtIn(tasks, texts) {
  const known = tasks.find(({ name }) => Object.hasOwn(texts, name));
  return known && texts[known.name];
}
