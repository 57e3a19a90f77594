// Hands a text to the user: as a download, or to the clipboard.

import { h } from "./dom.js";
import { notify, tellError } from "./notice.js";

export function download(name, blob) {
  const url = URL.createObjectURL(blob);
  const link = h("a", { href: url, download: name });
  link.click();
  setTimeout(() => URL.revokeObjectURL(url), 60_000);
}

export async function copy(text) {
  try {
    await navigator.clipboard.writeText(text);
    notify("Copied.");
  } catch {
    tellError(new Error("The browser does not allow it: select the text and copy it by hand."));
  }
}
