// A form that sends work to the server: runs it, stops it, and shows its progress.

import { find } from "./dom.js";
import { title } from "./format.js";
import { Refused, Unanswered } from "./server.js";

/** work: an async function of a watch, which is passed to the server; returns the final status */
export function startJob(form, work) {
  const button = find("button[type=submit]", form);
  const name = button.textContent;
  const voice = makeVoice(find(".status", form));
  let stop = null;

  const run = async () => {
    stop = new AbortController();
    button.textContent = "Stop";
    try {
      let note = "";
      const cut = (tokens) => (note = ` Texts of more than ${tokens} tokens were cut.`);
      const done = await work({ ...voice, cut, signal: stop.signal });
      voice.say(done + note);
    } catch (error) {
      voice.fail(explain(error, name));
    } finally {
      stop = null;
      button.textContent = name;
    }
  };

  form.addEventListener("submit", (event) => {
    event.preventDefault();
    if (stop) stop.abort();
    else run();
  });
  form.addEventListener("keydown", (event) => {
    if (event.key !== "Enter" || !(event.ctrlKey || event.metaKey) || stop) return;
    event.preventDefault();
    form.requestSubmit(button);
  });
  find(".clear", form)?.addEventListener("click", () => clear(form));
}

function clear(form) {
  const fields = [...form.querySelectorAll("textarea")];
  for (const field of fields) field.value = "";
  fields[0].focus();
}

function makeVoice(status) {
  const said = find(".said", status);
  const seconds = find(".seconds", status);
  const show = (text, kind = "", left = "") => {
    status.className = `status ${kind}`.trim();
    // Setting the same text again would announce it again.
    if (said.textContent !== text) said.textContent = text;
    seconds.textContent = left;
  };
  return {
    say: (text) => show(text),
    fail: (text) => show(text, "failed"),
    progress: (what, done, total) => show(`${title(what)}: ${done} of ${total}.`),
    waiting: (left) => show("The server is busy. Retrying automatically", "busy", `in ${left} s.`),
  };
}

function explain(error, name) {
  if (error.name === "AbortError") return "Stopped.";
  if (error instanceof Refused) return error.message;
  if (error instanceof Unanswered) return `${error.message} Your text is kept: press ${name} to retry.`;
  console.error(error);
  return "The page failed; see the browser's console.";
}
