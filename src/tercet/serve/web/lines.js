// Sentences, one per line.

export function linesOf(field) {
  return field.value.split("\n").map((line) => line.trim()).filter(Boolean);
}
