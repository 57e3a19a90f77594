// What differs between two versions, or two databases: counted by table, and the changes in pages.

import { button, fill, h, select } from "../core/dom.js";
import { openDialog } from "../core/dialog.js";
import { telling } from "../core/notice.js";
import { plural } from "../core/values.js";
import { tableOf } from "../data/definition.js";
import { changeRows, diffTable } from "../data/review.js";

const PAGE = 500;

export const differencePath = (database) => `/v1/databases/${encodeURIComponent(database)}/diff`;

/** Show the first changes, below words that are made of the answer, and a button for more of them. */
export async function showChanges(app, database, asked, place, words) {
  const page = (more) => app.api.get(differencePath(database), { ...asked, ...more, limit: PAGE });
  let answer = await page();
  let shown = answer.changes.length;
  const told = h("p", { class: "hint", role: "status" });
  const table = diffTable(answer.changes);
  const tell = () => {
    fill(told, `${words(answer)}: ${plural(shown, "change")}${answer.next_cursor ? ", the first ones" : ""}`);
    more.hidden = !answer.next_cursor;
  };
  const follow = telling(async () => {
    more.disabled = true;
    try {
      answer = await page({ from: answer.from, to: answer.to, cursor: answer.next_cursor });
      shown += answer.changes.length;
      table.querySelector("tbody").append(...changeRows(answer.changes));
      tell();
    } finally {
      more.disabled = false;
    }
  });
  const more = button("Show more", follow, { class: "small" });
  tell();
  fill(place, told, table, more);
}

/** A branch beside its parent: how much of each table differs, and the rows of one of them. */
export async function compare(app, parent, name) {
  const counted = await app.api.get(differencePath(name), { from_database: parent, count: true });
  const { from, to, counts } = counted;
  openDialog(`${name} beside ${parent}`, () => {
    if (counts.length === 0) return h("p", { class: "empty" }, "Nothing differs.");
    const lines = counts.map((each) => {
      const numbers = [each.insert, each.update, each.delete].map((count) => h("td", { class: "number" }, count));
      return h("tr", {}, h("th", { scope: "row", class: "mono" }, each.table), numbers, h("td", {}, each.schema > 0 && h("span", { class: "tag warn" }, "other definition")));
    });
    const place = h("div", {});
    const show = telling(async (tables) => {
      fill(place, h("p", { class: "hint", role: "status" }, "Reading…"));
      await showChanges(app, name, { from_database: parent, from, to, tables }, place, () => `From ${parent} to ${name}`);
    });
    const choose = select([["", "…"], ...counts.map(({ table }) => [table, table])], "", (table) => table && show(table));
    return [
      h("p", { class: "hint" }, `What has to change in ${parent} (version ${from}) to make it ${name} (version ${to}).`),
      tableOf(["Table", "Inserted", "Updated", "Deleted", ""], lines),
      h("label", { class: "inline" }, "What differs in", choose),
      place,
    ];
  }, { wide: true });
}
