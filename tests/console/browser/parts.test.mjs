// The parts Time, Live and Admin.

import assert from "node:assert/strict";
import { test } from "node:test";
import { ADDRESS, asked, barriers, cells, eventually, picture, query, withPage } from "./page.mjs";

await query("CREATE TABLE accounts (id INT PRIMARY KEY, owner TEXT NOT NULL, balance INT NOT NULL)");
await query("INSERT INTO accounts SELECT n, 'Owner ' || n, n * 100 FROM generate_series(1, 12) AS t(n)");
const { version: filled } = await query("SELECT 1");
await query("UPDATE accounts SET balance = balance + 11 WHERE id <= 3");
await query("DELETE FROM accounts WHERE id = 12");

const row = async (page, at) => (await cells(page))[at];

test("a slider shows the table as it was, and what has changed since", withPage("time", async (page) => {
  const slider = page.getByRole("slider", { name: "Version" });
  await page.getByText(/accounts as of version .*: 11 rows/).waitFor();
  await page.getByRole("button", { name: "Older" }).click();
  await page.getByRole("button", { name: "Older" }).click();
  await page.getByText(`accounts as of version ${filled}: 12 rows`).waitFor();
  await eventually(async () => assert.match(await slider.getAttribute("aria-valuetext"), new RegExp(`version ${filled},`)));
  await eventually(async () => assert.deepEqual(await row(page, 0), ["1", "Owner 1", "100"]));
  await page.getByRole("button", { name: "What has changed since" }).click();
  await page.getByText(/: 4 changes/).waitFor();
  await picture(page, "time");
  assert.deepEqual(await barriers(page), []);
}));

test("a restore shows first what it would change, and is a version itself", async () => {
  await asked("POST", "/v1/databases", { name: "restored", branch_of: "main" });
  await withPage("time", async (page) => {
    await page.getByLabel("Database").selectOption("restored");
    await page.getByText(/accounts as of version .*: 11 rows/).waitFor();
    await page.getByRole("button", { name: "Older" }).click();
    await page.getByRole("button", { name: "Older" }).click();
    await page.getByText(/accounts as of version .*: 12 rows/).waitFor();
    await page.getByRole("button", { name: "Restore…" }).click();
    await page.getByText("would change").waitFor();
    assert.equal((await query("SELECT count(*) AS n FROM accounts", "restored")).rows[0].n, 11);
    await page.getByRole("dialog").getByRole("button", { name: "Restore", exact: true }).click();
    await page.getByText(/Restored, as version/).waitFor();
    assert.equal((await query("SELECT count(*) AS n FROM accounts", "restored")).rows[0].n, 12);
  })();
});

test("a table that comes late does not take the place of what a restore would change", async () => {
  await asked("POST", "/v1/databases", { name: "hasty", branch_of: "main" });
  await withPage("time", async (page) => {
    await page.getByLabel("Database").selectOption("hasty");
    await page.getByText(/accounts as of version .*: 11 rows/).waitFor();
    const waiting = [];
    let release;
    const held = new Promise((resolve) => (release = resolve));
    await page.route(/\/v1\/query/, async (route) => {
      if (route.request().postData().includes("FROM accounts")) {
        waiting.push(route);
        await held;
      }
      await route.continue();
    });
    await page.getByRole("button", { name: "Older" }).click();
    await eventually(async () => assert.ok(waiting.length > 0, "the table is asked for"));
    await page.getByRole("button", { name: "Restore…" }).click();
    await page.getByText("would change").waitFor();
    const answered = page.waitForResponse(/\/v1\/query/);
    release();
    await (await answered).finished();
    await page.evaluate(() => new Promise((drawn) => requestAnimationFrame(() => requestAnimationFrame(drawn))));
    assert.equal(await page.getByText("would change").count(), 1);
    assert.equal(await page.getByText(/accounts as of version/).count(), 0);
  })();
});

test("an answer about another database that comes late is not shown", async () => {
  await asked("POST", "/v1/databases", { name: "late", branch_of: "main" });
  await query("DELETE FROM accounts WHERE id > 4", "late");
  await withPage("sql", async (page) => {
    const asks = /\/databases\/main\/versions/;
    let release, isHeld = false;
    const held = new Promise((resolve) => (release = resolve));
    await page.route(asks, async (route) => {
      isHeld = true;
      await held;
      await route.continue();
    });
    await page.goto(`${ADDRESS}/console#/time`);
    await eventually(async () => assert.ok(isHeld, "main is asked about first"));
    await page.getByLabel("Database").selectOption("late");
    const shown = page.getByText(/accounts as of version .*: 4 rows/);
    await shown.waitFor();
    const most = await page.getByRole("slider", { name: "Version" }).getAttribute("max");
    const came = page.waitForResponse(asks);
    release();
    await (await came).finished();
    await page.evaluate(() => new Promise((resolve) => setTimeout(resolve, 300)));
    assert.ok(await shown.isVisible());
    assert.equal(await page.getByRole("slider", { name: "Version" }).getAttribute("max"), most);
  })();
  await asked("DELETE", "/v1/databases/late");
});

test("branches are a tree: made, compared, deleted", withPage("time/branches", async (page) => {
  await page.locator(".branch", { hasText: "main" }).first().getByRole("button", { name: "Branch" }).click();
  await page.getByRole("dialog").getByLabel("Name").fill("trial");
  await page.getByRole("button", { name: "Make the branch" }).click();
  await page.locator(".branch-tree ul .branch", { hasText: "trial" }).waitFor();
  await query("UPDATE accounts SET owner = 'Somebody else' WHERE id = 2", "trial");
  await picture(page, "branches");
  assert.deepEqual(await barriers(page), []);
  await page.locator(".branch", { hasText: "trial" }).last().getByRole("button", { name: "Compare with main" }).click();
  await page.getByLabel("What differs in").selectOption("accounts");
  await page.getByText("From main to trial: 1 change", { exact: true }).waitFor();
  await eventually(async () => assert.match(await page.locator("dialog").innerText(), /Somebody else/));
  await page.keyboard.press("Escape");
  await query("CREATE TABLE many (id INT PRIMARY KEY, t TEXT)", "trial");
  await query("INSERT INTO many SELECT n, 'row ' || n FROM generate_series(1, 1200) n", "trial");
  await page.locator(".branch", { hasText: "trial" }).last().getByRole("button", { name: "Compare with main" }).click();
  await page.getByRole("row", { name: "many 1200 0 0 other definition" }).waitFor();
  await page.getByLabel("What differs in").selectOption("many");
  await page.getByText("From main to trial: 500 changes, the first ones").waitFor();
  for (const text of [/1.?000 changes, the first ones$/, /1.?201 changes$/]) {
    await page.getByRole("button", { name: "Show more" }).click();
    await page.getByText(text).waitFor();
  }
  assert.equal(await page.getByRole("button", { name: "Show more" }).count(), 0);
  await eventually(async () => assert.match(await page.locator("dialog").innerText(), /row 1200/));
  await page.keyboard.press("Escape");
  await page.locator(".branch", { hasText: "trial" }).last().getByRole("button", { name: "Delete" }).click();
  await page.getByRole("dialog").getByRole("button", { name: "Delete" }).click();
  await page.locator(".branch", { hasText: "trial" }).waitFor({ state: "detached" });
}));

test("a live query follows the database, and cells that change glow", withPage("live", async (page) => {
  await page.getByLabel("Live query").fill("SELECT id, owner, balance FROM accounts WHERE balance < 5000");
  await page.getByRole("button", { name: "Follow" }).click();
  await page.getByText(/11 rows at version/).waitFor();
  await query("UPDATE accounts SET balance = 4242 WHERE id = 2");
  await page.locator(".grid-cell", { hasText: "4242" }).waitFor();
  const glowing = page.locator(".grid-cell.glows");
  await glowing.first().waitFor();
  assert.deepEqual(await glowing.allTextContents(), ["4242"]);
  await query("INSERT INTO accounts VALUES (50, 'New', 1)");
  await page.getByText(/12 rows at version/).waitFor();
  await picture(page, "live");
  assert.deepEqual(await barriers(page), []);
  await page.getByRole("button", { name: "Stop" }).click();
  await page.getByText("Stopped.").waitFor();
}));

test("a live query and the log of changes go on after a break", withPage("live", async (page) => {
  const broken = (pattern, body) => page.route(pattern, (route) => route.fulfill({ contentType: "text/event-stream", body }), { times: 1 });
  await broken("**/v1/query", 'event: columns\ndata: {"columns":["id"],"types":["integer"],"version":1}\n\nevent: ready\ndata: {"version":1}\n\n');
  await page.getByLabel("Live query").fill("SELECT id FROM accounts WHERE id = 4");
  await page.getByRole("button", { name: "Follow" }).click();
  await page.getByText("asking again").waitFor();
  await page.getByText(/1 rows? at version/).waitFor();
  await page.goto(`${ADDRESS}/console#/live/changes`);
  await broken("**/v1/changes*", 'event: change\ndata: {"version":999,"time":"2026-01-01T00:00:00Z","table":"half","op":"insert","key":{"id":1},"before":null,"after":{"id":1}}\n\n');
  await page.getByRole("button", { name: "Follow" }).click();
  await page.getByText("asking again").waitFor();
  await page.getByText(/since version/).waitFor();
  await query("UPDATE accounts SET balance = balance + 1 WHERE id = 4");
  await page.locator("tbody tr", { hasText: "accounts" }).waitFor();
  assert.equal(await page.locator("tbody tr", { hasText: "half" }).count(), 0);
}));

test("all changes are a log with filters", withPage("live/changes", async (page) => {
  await page.getByRole("button", { name: "Follow" }).click();
  await page.getByText(/since version/).waitFor();
  await query("UPDATE accounts SET balance = 7 WHERE id = 3");
  await query("INSERT INTO accounts VALUES (51, 'Another <i>one</i>', 1)");
  await page.getByText("Another <i>one</i>").waitFor();
  await eventually(async () => assert.equal(await page.locator("tbody tr").count(), 2));
  await page.getByLabel("Change", { exact: true }).selectOption("update");
  await eventually(async () => assert.equal(await page.locator("tbody tr").count(), 1));
  assert.deepEqual(await barriers(page), []);
}));

test("the overview measures, and shows what is used", withPage("admin", async (page) => {
  await page.locator("svg.spark path.spark-line").first().waitFor();
  await page.getByText("connections").first().waitFor();
  await page.waitForFunction(() => !document.querySelector(".figure").textContent.includes("…"));
  await picture(page, "admin");
  assert.deepEqual(await barriers(page), []);
}));

test("databases are made, renamed and deleted", withPage("admin/databases", async (page) => {
  await page.getByRole("button", { name: "New database" }).click();
  await page.getByRole("dialog").getByLabel("Name").fill("shop");
  await page.getByRole("button", { name: "Make it" }).click();
  const line = page.getByRole("row", { name: /^shop/ });
  await line.waitFor();
  await line.getByRole("button", { name: "Change" }).click();
  await page.getByRole("dialog").getByLabel("Name").fill("store");
  await page.getByRole("dialog").getByLabel(/kept for/).fill("2h");
  await page.getByRole("dialog").getByRole("button", { name: "Change" }).click();
  const renamed = page.getByRole("row", { name: /^store/ });
  await renamed.waitFor();
  assert.equal((await asked("GET", "/v1/databases/store")).history, 7200);
  assert.deepEqual(await barriers(page), []);
  await renamed.getByRole("button", { name: "Delete" }).click();
  await page.getByRole("dialog").getByRole("button", { name: "Delete" }).click();
  await renamed.waitFor({ state: "detached" });
}));

test("keys are made with scopes or statements, rotated and revoked", withPage("admin/keys", async (page) => {
  await page.getByRole("button", { name: "New key" }).click();
  await page.getByRole("dialog").getByLabel("Name").fill("reader");
  await page.getByRole("button", { name: "Make it" }).click();
  const secret = await page.getByRole("dialog", { name: "The key reader" }).locator("pre").textContent();
  assert.match(secret, /^svc_k_/);
  await page.keyboard.press("Escape");
  await page.getByRole("button", { name: "New key" }).click();
  await page.getByRole("dialog").getByLabel("Name").fill("browsers");
  await page.getByText("Only some statements").click();
  await page.getByRole("dialog").getByLabel("Statements", { exact: true }).fill('{"mine": "SELECT id FROM accounts WHERE owner = :user"}');
  await page.getByRole("dialog").getByLabel("Parameters that each session binds").fill("user");
  await page.getByRole("button", { name: "Make it" }).click();
  await page.getByRole("dialog", { name: "The key browsers" }).waitFor();
  await page.keyboard.press("Escape");
  await page.getByRole("button", { name: "1 statement" }).waitFor();
  assert.deepEqual(await barriers(page), []);
  await page.getByRole("row", { name: /reader/ }).getByRole("button", { name: "Revoke" }).click();
  await page.getByRole("dialog").getByRole("button", { name: "Revoke" }).click();
  await page.getByRole("row", { name: /reader.*revoked/ }).waitFor();
  assert.ok(!(await page.content()).includes(secret), "the secret is gone with its dialog");
}));

test("sessions and open transactions of all keys are listed and ended", withPage("admin/sessions", async (page) => {
  const mine = page.getByRole("row", { name: /yours/ });
  await mine.waitFor();
  assert.equal(await mine.getByRole("button").count(), 0, "one signs out of one's own");
  const { session } = await asked("POST", "/v1/session", { scopes: ["data:read"] });
  const { transaction } = await asked("POST", "/v1/transaction/open", {});
  await page.getByRole("link", { name: "Keys" }).click();
  await page.getByRole("link", { name: "Sessions" }).click();
  const held = page.getByRole("row", { name: new RegExp(transaction.id) });
  await held.waitFor();
  assert.deepEqual(await barriers(page), []);
  await held.getByRole("button", { name: "Roll back" }).click();
  await page.getByRole("dialog").getByRole("button", { name: "Roll back" }).click();
  await page.getByText("None is open.").waitFor();
  const other = page.getByRole("row", { name: new RegExp(session.id) });
  await other.getByRole("button", { name: "End" }).click();
  await page.getByRole("dialog").getByRole("button", { name: "End" }).click();
  await other.waitFor({ state: "detached" });
  await page.getByRole("link", { name: "Statements" }).click();
  await page.locator(".pad .empty, .pad table").first().waitFor();
}));

test("a probe of the matrix is run from the page", withPage("admin/capabilities", async (page) => {
  await page.getByRole("button", { name: "Run the probe of select", exact: true }).click();
  await page.getByRole("button", { name: /passed in/ }).click();
  await page.getByRole("dialog", { name: "select" }).getByText("ok").first().waitFor();
  await page.keyboard.press("Escape");
  assert.deepEqual(await barriers(page), []);
}));
