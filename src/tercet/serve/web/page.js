// The page: loads the description of the model and opens the tabs it supports.

import { find } from "./dom.js";
import { exampleList, examplePair, exampleTexts } from "./examples.js";
import { enumerate } from "./format.js";
import { askForKey } from "./key.js";
import { startList } from "./list.js";
import { startPair } from "./pair.js";
import { startSearch } from "./search.js";
import { startSentences } from "./sentences.js";
import { Server } from "./server.js";
import { startTabs } from "./tabs.js";
import { namesOf, tabName, taskLines } from "./wording.js";

const MODES = ["single", "bi", "cross"];

function tasksOf({ tasks }) {
  return Object.entries(tasks).map(([name, task]) => {
    return { ...task, name, modes: MODES.filter((mode) => task.modes.includes(mode)) };
  });
}

function describe({ model_id: model, tercet: { encoder, width, index } }, tasks) {
  const name = ({ name, modes }) => (modes[0] === "single" ? name : `${name} (${modes.join(", ")})`);
  const can = tasks.length > 0 ? `Tasks: ${enumerate(tasks.map(name))}.` : "It has no tasks, only vectors.";
  const held = index ? ` The index ${index.name} has ${index.rows.toLocaleString("en")} rows.` : "";
  return `Model “${model}”: encoder ${encoder}, ${width}-dimensional vectors. ${can}${held}`;
}

/** A tab in the words of its tasks; without tasks it stays as it is. */
function present(tab, tasks, short) {
  if (tasks.length === 0) return;
  find(`#tab-${tab}`).textContent = tabName(tasks, short);
  find(`#panel-${tab} h2`).textContent = namesOf(tasks);
  find(`#panel-${tab} .tasks`).replaceChildren(...taskLines(tasks));
}

/** Put texts into fields that are empty: who comes back to the page finds what they wrote. */
function fill(fields, texts) {
  if (fields.some((field) => find(field).value !== "")) return;
  fields.forEach((field, place) => (find(field).value = texts[place]));
}

async function start() {
  const line = find("#model");
  const say = (text) => (line.textContent = text);
  const waiting = () => say("The server is busy. Retrying automatically.");
  const server = new Server(askForKey);
  let info;
  try {
    info = await server.info({ waiting });
  } catch (error) {
    line.classList.add("failed");
    say(`${error.message} Reload this page to retry.`);
    return;
  }
  const tasks = tasksOf(info.tercet);
  const single = tasks.filter(({ inputs }) => inputs === "texts");
  const pairs = tasks.filter(({ inputs }) => inputs === "pairs");
  say(describe(info, tasks));
  document.title = `${info.model_id} · Tercet`;
  present("sentences", single, "Sentences");
  present("pair", pairs, "Pair");
  fill(["#sentences-text"], [exampleTexts(single).join("\n")]);
  fill(["#first", "#second"], examplePair(pairs));
  fill(["#list-text"], [exampleList(single).join("\n")]);
  if (single.length > 0) startSentences(find("#panel-sentences"), server, single);
  startPair(find("#panel-pair"), server, pairs);
  startList(find("#panel-list"), server, single);
  if (info.tercet.index) startSearch(find("#panel-search"), server);
  const names = ["sentences", "pair", "list", "search"];
  const absent = [single.length === 0 && "sentences", !info.tercet.index && "search"];
  startTabs(find("[role=tablist]"), names.filter((name) => !absent.includes(name)));
}

find(".skip").addEventListener("click", (event) => {
  // The address after the # would be taken for a tab.
  event.preventDefault();
  find("#content").focus();
});
start();
