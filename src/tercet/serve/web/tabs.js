// Tabs, each with its own address after the #.

import { find } from "./dom.js";

const KEYS = { ArrowRight: 1, ArrowLeft: -1 };

/** names: the available tabs; the others are removed. */
export function startTabs(list, names) {
  const tabs = [...list.querySelectorAll("[role=tab]")].filter((tab) => {
    const exists = names.includes(nameOf(tab));
    if (!exists) {
      panelOf(tab).remove();
      tab.remove();
    }
    return exists;
  });
  const choose = (name) => {
    for (const tab of tabs) {
      const chosen = nameOf(tab) === name;
      tab.setAttribute("aria-selected", String(chosen));
      tab.setAttribute("tabindex", chosen ? "0" : "-1");
      panelOf(tab).hidden = !chosen;
    }
  };
  const go = (tab) => {
    choose(nameOf(tab));
    location.hash = nameOf(tab);
  };
  const follow = () => {
    const named = location.hash.slice(1);
    choose(names.includes(named) ? named : names[0]);
  };
  list.addEventListener("click", (event) => {
    const tab = event.target.closest("[role=tab]");
    if (tab) go(tab);
  });
  list.addEventListener("keydown", (event) => {
    const next = target(tabs, event);
    if (next === undefined) return;
    event.preventDefault();
    next.focus();
    go(next);
  });
  window.addEventListener("hashchange", follow);
  follow();
}

function nameOf(tab) {
  return tab.dataset.name;
}

function panelOf(tab) {
  return find(`#${tab.getAttribute("aria-controls")}`);
}

function target(tabs, { key, target: from }) {
  const here = tabs.indexOf(from.closest("[role=tab]"));
  if (key in KEYS) return tabs[(here + KEYS[key] + tabs.length) % tabs.length];
  return { Home: tabs[0], End: tabs.at(-1) }[key];
}
