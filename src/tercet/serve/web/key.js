// Asks for the API key, which stays in memory.

import { find } from "./dom.js";

/** refused: whether an earlier key was refused; returns the key, or null. */
export function askForKey(refused) {
  const dialog = find("#key");
  const field = find("input", dialog);
  find("#key-title").textContent = refused ? "That key was refused" : "This server needs a key";
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
