// Statements that were run, newest first: in this browser, for one API key. Parameters and results
// are not kept.

import { button, fill, h } from "../core/dom.js";
import { openDialog } from "../core/dialog.js";
import { forget, keep, kept } from "../core/kept.js";
import { moment, plural } from "../core/values.js";

const ENTRIES_MAX = 200;
const TEXT_MAX = 20_000;

export class History {
  constructor(owner, storage = localStorage) {
    this.name = `history.${owner}`;
    this.storage = storage;
  }

  get entries() {
    const found = kept(this.storage, this.name, []);
    return Array.isArray(found) ? found : [];
  }

  add(sql, database, outcome) {
    if (sql.length > TEXT_MAX) return;
    const entry = { sql, database, at: new Date().toISOString(), ...outcome };
    const others = this.entries.filter((each) => each.sql !== sql || each.database !== database);
    keep(this.storage, this.name, [entry, ...others].slice(0, ENTRIES_MAX));
  }

  clear() {
    forget(this.storage, this.name);
  }
}

/** Show the history; `take` is called with the text that is chosen. */
export function showHistory(history, take) {
  openDialog(
    "History",
    (close) => {
      const list = h("ul", { class: "history" });
      const draw = (words) => {
        const found = history.entries.filter((each) => each.sql.toLowerCase().includes(words.toLowerCase()));
        fill(list, found.map((entry) => item(entry, close, take)));
        if (found.length === 0) fill(list, h("li", { class: "hint" }, "Nothing here yet."));
      };
      const search = h("input", {
        type: "search",
        placeholder: "Search",
        "aria-label": "Search the history",
        on: { input: () => draw(search.value) },
      });
      const clear = button("Forget all", () => (history.clear(), draw("")), { icon: "trash" });
      draw("");
      return [
        h("div", { class: "row" }, search, h("div", { class: "spacer" }), clear),
        h("p", { class: "hint" }, `The last ${ENTRIES_MAX} statements of this API key in this browser, without parameters and results.`),
        list,
      ];
    },
    { wide: true },
  );
}

function item(entry, close, take) {
  const choose = () => {
    close();
    take(entry.sql);
  };
  const outcome = entry.error
    ? h("span", { class: "tag bad" }, entry.error)
    : h("span", { class: "tag" }, plural(entry.rows ?? 0, "row"));
  const about = h("div", { class: "row hint" }, moment(entry.at), `· ${entry.database}`, outcome);
  const text = entry.sql.length > 600 ? `${entry.sql.slice(0, 600)}…` : entry.sql;
  return h("li", {}, h("button", { type: "button", class: "entry", on: { click: choose } }, h("pre", {}, text), about));
}
