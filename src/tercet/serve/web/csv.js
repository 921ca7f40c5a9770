// Tables as CSV by RFC 4180.

import { make } from "./dom.js";

export function toCsv(header, rows) {
  return [header, ...rows].map((row) => `${row.map(field).join(",")}\r\n`).join("");
}

function field(value) {
  // A spreadsheet would run such a text as a formula.
  const text = typeof value === "string" && /^[=+\-@\t\r]/.test(value) ? `'${value}` : String(value);
  return /[",\r\n]/.test(text) ? `"${text.replaceAll('"', '""')}"` : text;
}

export function download(name, text) {
  const address = URL.createObjectURL(new Blob([text], { type: "text/csv;charset=utf-8" }));
  make("a", { href: address, download: name }).click();
  setTimeout(() => URL.revokeObjectURL(address), 10_000);
}
