// Tables as CSV by RFC 4180; a ' keeps a spreadsheet from running texts that begin like a formula.

import { make } from "./dom.js";

export function toCsv(header, rows) {
  return [header, ...rows].map((row) => `${row.map(field).join(",")}\r\n`).join("");
}

const FORMULA = /^[=+\-@\t\r]/;

function field(value) {
  const risky = FORMULA.test(value) && Number.isNaN(Number(value));
  const text = risky ? `'${value}` : String(value);
  return /[",\r\n]/.test(text) ? `"${text.replaceAll('"', '""')}"` : text;
}

export function download(name, text) {
  const address = URL.createObjectURL(new Blob([text], { type: "text/csv;charset=utf-8" }));
  make("a", { href: address, download: name }).click();
  setTimeout(() => URL.revokeObjectURL(address), 10_000);
}
