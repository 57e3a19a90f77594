// Short words at the edge of the page, read out by screen readers. Errors stay until closed.

import { h, iconButton } from "./dom.js";
import { wordsOf } from "./api.js";

const SHOWN_MS = 5000;
const SHOWN_MAX = 4;

const corner = h("div", { class: "notices", role: "status", "aria-live": "polite" });

/** Show them from now on; what was told before is of a session that has ended. */
export function mountNotices() {
  corner.replaceChildren();
  document.body.append(corner);
}

export function notify(text) {
  const shown = show(text, "notice");
  setTimeout(() => shown.remove(), SHOWN_MS);
}

/** Tell of an error; what was cancelled by hand is none. */
export function tellError(error) {
  if (error.name === "AbortError") return;
  show(error.told ? `${wordsOf(error)} (${error.told})` : wordsOf(error), "notice bad");
}

/** A listener that tells of the errors of its work. */
export function telling(work) {
  return (...given) => Promise.resolve(work(...given)).catch(tellError);
}

function show(text, kind) {
  const words = h("p", {}, text);
  const shown = h("div", { class: kind }, words);
  shown.append(iconButton("close", "Dismiss", () => shown.remove()));
  corner.append(shown);
  while (corner.children.length > SHOWN_MAX) corner.firstElementChild.remove();
  return shown;
}
