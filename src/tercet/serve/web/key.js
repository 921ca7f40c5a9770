// Asks for the API key; it stays in memory.

import { find } from "./dom.js";

/** refused: whether a key was given before; gives the key, or null. */
export function askForKey(refused) {
  const dialog = find("#key");
  const field = find("input", dialog);
  find("#key-title").textContent = refused ? "That key was refused" : "This server asks for a key";
  field.value = "";
  dialog.returnValue = "";
  dialog.showModal();
  return new Promise((resolve) => {
    const done = () => {
      const key = field.value.trim();
      field.value = "";
      resolve(dialog.returnValue === "use" && key ? key : null);
    };
    dialog.addEventListener("close", done, { once: true });
  });
}
