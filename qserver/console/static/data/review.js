// The review of changes before they are applied: what a dry run says would change, and conflicts
// with what others have changed meanwhile, as data to choose from.

import { button, fill, h } from "../core/dom.js";
import { openDialog } from "../core/dialog.js";
import { wordsOf } from "../core/api.js";
import { plural, textOf } from "../core/values.js";
import { apply, Conflicts, dryRun } from "./edits.js";

/** Show the review; `applied` is called when the changes are in the database. */
export function review(app, edits, applied) {
  openDialog(
    "Review the changes",
    (close) => {
      const place = h("div", { class: "form" });
      const look = async () => {
        fill(place, h("p", { class: "hint", role: "status" }, "Running it without applying it…"));
        try {
          const answer = await dryRun(app, edits);
          fill(place, diffTable(answer.diff), statementsOf(edits), actions(send, close));
        } catch (error) {
          failed(error);
        }
      };
      const send = async () => {
        try {
          const done = await apply(app, edits);
          close();
          applied(done);
        } catch (error) {
          failed(error);
        }
      };
      const failed = (error) => {
        if (error instanceof Conflicts) fill(place, conflicts(edits, error, look, close));
        else fill(place, h("p", { class: "problem", role: "alert" }, wordsOf(error)), statementsOf(edits), h("div", { class: "buttons" }, button("Close", close), button("Try again", look)));
      };
      look();
      return place;
    },
    { wide: true },
  );
}

function actions(send, close) {
  return h("div", { class: "buttons" }, button("Back", close), button("Apply as one transaction", send, { class: "primary" }));
}

/** The changes of a dry run, or between two versions. */
export function diffTable(diff) {
  const rows = changeRows(diff);
  const head = h("thead", {}, h("tr", {}, ["Change", "Table", "Key", "Values"].map((title) => h("th", { scope: "col" }, title))));
  const caption = h("caption", { class: "visually-hidden" }, "Changes");
  if (rows.length === 0) return h("p", { class: "empty" }, "Nothing differs.");
  return h("div", { class: "table-scroll", tabindex: 0, role: "region", "aria-label": "Changes" }, h("table", {}, caption, head, h("tbody", {}, rows)));
}

export function changeRows(diff) {
  return diff.map((change) =>
    h(
      "tr",
      {},
      h("td", {}, h("span", { class: `tag ${KINDS[change.op]}` }, change.op)),
      h("td", { class: "mono" }, change.table),
      h("td", { class: "mono" }, change.key ? Object.values(change.key).map(textOf).join(", ") : ""),
      h("td", { class: "mono" }, changedValues(change)),
    ),
  );
}

const KINDS = { insert: "good", update: "warn", delete: "bad", schema: "accent" };

function changedValues({ op, before, after, definition, statement }) {
  if (op === "schema") {
    const text = (list) => (list ?? []).join("; ");
    return statement ?? [definition?.before && h("del", {}, text(definition.before)), " ", definition?.after && h("ins", {}, text(definition.after))];
  }
  const names = Object.keys(after ?? before ?? {});
  return names
    .filter((name) => op !== "update" || textOf(before[name]) !== textOf(after[name]))
    .map((name) =>
      h(
        "div",
        {},
        h("span", { class: "quiet" }, `${name}: `),
        before && h("del", {}, cut(textOf(before[name]))),
        before && after && " → ",
        after && h("ins", {}, cut(textOf(after[name]))),
      ),
    );
}

const cut = (text) => (text.length > 300 ? `${text.slice(0, 300)}…` : text);

function statementsOf(edits) {
  const lines = edits.statements().map(({ sql, params }) => h("li", {}, h("code", {}, sql), params.length > 0 && h("span", { class: "quiet" }, ` ${textOf(params)}`)));
  return h("details", {}, h("summary", {}, plural(lines.length, "statement")), h("ol", { class: "statements" }, lines));
}

function conflicts(edits, { found, columns }, look, close) {
  const sections = found.map(({ edit, now }) => {
    const names = edit.isDeleted ? columns : Object.keys(edit.values);
    const rows = names.map((name) => {
      const is = now ? textOf(now[columns.indexOf(name)]) : "—";
      const was = textOf(edit.seen[name]);
      const yours = edit.isDeleted ? "deleted" : textOf(edit.values[name]);
      return h("tr", { class: is === was ? "" : "is-changed" }, h("th", { scope: "row" }, name), [was, is, yours].map((text) => h("td", { class: "mono" }, cut(text))));
    });
    const head = h("tr", {}, ["Column", "When you saw it", "Now", "Yours"].map((title) => h("th", { scope: "col" }, title)));
    const theirs = button("Drop my change", () => (edits.drop(edit), edits.size > 0 ? look() : close()));
    const mine = now && button("Keep mine", () => (edits.rebase(edit, columns, now), look()), { class: "primary" });
    const title = now ? `Row ${edit.key.map(textOf).join(", ")} has changed` : `Row ${edit.key.map(textOf).join(", ")} is gone`;
    return h("section", { class: "conflict" }, h("h3", {}, title), h("div", { class: "table-scroll" }, h("table", {}, h("thead", {}, head), h("tbody", {}, rows))), h("div", { class: "buttons" }, theirs, mine));
  });
  return [h("p", { role: "alert" }, "Others have changed these rows since they were shown. Nothing was applied."), sections];
}
