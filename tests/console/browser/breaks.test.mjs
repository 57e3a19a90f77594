// What is left of one's work when something breaks off: a session, a request, a part that is loaded.

import assert from "node:assert/strict";
import { test } from "node:test";
import { asked, barriers, cells, closed, eventually, opened, query, run, signedIn, signIn, type, withPage, ADDRESS, KEY } from "./page.mjs";

const LONG = "a_table_whose_name_is_so_long_that_no_list_at_the_side_shows_it";
await query("CREATE TABLE notes (id INT PRIMARY KEY, body TEXT)");
await query("INSERT INTO notes VALUES (1, 'first'), (2, E'two\\nlines'), (3, '')");
await query(`CREATE TABLE ${LONG} (id INT PRIMARY KEY)`);
await asked("POST", "/v1/databases", { name: "other" });

async function change(page, text, value) {
  await page.locator(".grid-cell", { hasText: text }).first().dblclick();
  await page.getByRole("dialog").locator("textarea").fill(value);
  await page.keyboard.press("Control+Enter");
  await page.getByText("1 change not applied").waitFor();
}

async function endOwn(page) {
  const { id } = await page.evaluate(() => JSON.parse(sessionStorage["qserver.session"]));
  await asked("DELETE", `/v1/sessions/${id}`);
}

test("changes that wait are there when the same key signs in again, and for no other", async () => {
  const { key } = await asked("POST", "/v1/keys", { name: "another" });
  const page = await signedIn("data/notes", { expected: [/401/] });
  for (const [next, left] of [[KEY, 1], [key, 0]]) {
    if (left === 1) await change(page, "first", "mine");
    await page.waitForLoadState("networkidle");
    await endOwn(page);
    await page.getByRole("button", { name: "Load again" }).click();
    await page.getByText("Your session has ended").waitFor();
    await signIn(page, next);
    await page.getByRole("grid", { name: "Rows of notes" }).waitFor();
    await eventually(async () => assert.equal(await page.getByText("1 change not applied").count(), left));
    assert.equal((await cells(page))[0][1], left === 1 ? "mine" : "first");
  }
  await closed(page);
});

test("whoever leaves changes behind is asked first", withPage("data/notes", async (page) => {
  await change(page, "first", "mine");
  await page.getByLabel("Database").selectOption("other");
  await page.getByRole("dialog").getByRole("button", { name: "Cancel" }).click();
  await eventually(async () => assert.equal(await page.getByLabel("Database").inputValue(), "main"));
  await page.getByText("1 change not applied").waitFor();
  const asks = await page.evaluate(() => !dispatchEvent(new Event("beforeunload", { cancelable: true })));
  assert.ok(asks, "a reload asks");
  await page.getByLabel("Database").selectOption("other");
  await page.getByRole("dialog").getByRole("button", { name: "Leave" }).click();
  await page.getByText("There are no tables yet").first().waitFor();
}));

test("going back closes a dialog about what was left", withPage("data", async (page) => {
  for (const name of ["notes", LONG]) await page.locator(".list").getByRole("link", { name: new RegExp(`^${name}`) }).click();
  await page.getByRole("grid", { name: `Rows of ${LONG}` }).waitFor();
  await page.getByRole("button", { name: "Add row" }).click();
  await page.getByRole("dialog").waitFor();
  await page.goBack();
  await page.getByRole("grid", { name: "Rows of notes" }).waitFor();
  assert.equal(await page.locator("dialog").count(), 0);
}));

test("a long name leaves the list its width, and a line break is seen", withPage("data/notes", async (page) => {
  await page.getByText("two↵lines").waitFor();
  const side = await page.locator(".side").evaluate((element) => element.scrollWidth - element.clientWidth);
  assert.ok(side <= 0, `the list is ${side} pixels too wide`);
  await page.getByRole("link", { name: LONG }).getByText("0", { exact: true }).waitFor();
}));

test("a part that is being loaded says so, and one that is not there too", async () => {
  const page = await signedIn("sql", { expected: [/ERR_FAILED/] });
  let goOn;
  await page.route("**/time/view.js", async (route) => {
    await new Promise((resolve) => (goOn = resolve));
    await route.continue();
  });
  await page.route("**/live/view.js", (route) => route.abort());
  await page.getByRole("link", { name: "Time" }).click();
  await page.getByRole("main").getByText("Loading").waitFor();
  assert.equal(await page.locator(".cm-content").count(), 0, "it is not the part before");
  goOn();
  await page.getByRole("heading", { name: "Time" }).waitFor();
  await page.getByRole("link", { name: "Live" }).click();
  await page.getByText("could not be loaded").waitFor();
  await page.getByRole("button", { name: "Reload the page" }).waitFor();
  assert.deepEqual(await barriers(page), []);
  await page.unroute("**/live/view.js");
  await page.getByRole("button", { name: "Reload the page" }).click();
  await page.getByRole("heading", { name: "Live" }).waitFor();
  await closed(page);
});

test("a request under way is seen", withPage("data", async (page) => {
  await page.waitForLoadState("networkidle");
  let goOn;
  await page.route("**/v1/query", async (route) => {
    await new Promise((resolve) => (goOn = resolve));
    await route.continue();
  });
  await page.locator(".list").getByRole("link", { name: /^notes/ }).click();
  await page.getByRole("progressbar").waitFor();
  await eventually(() => goOn());
  await page.unroute("**/v1/query");
  await page.getByRole("grid", { name: "Rows of notes" }).waitFor();
  await page.getByRole("progressbar").waitFor({ state: "hidden" });
}));

test("a lost connection is told in words", async () => {
  const page = await signedIn("sql", { expected: [/ERR_FAILED/] });
  await page.route("**/v1/query", (route) => route.abort());
  await run(page, "SELECT 1");
  assert.equal((await page.locator(".error-box").innerText()).trim(), "The server does not answer, or the connection was lost.");
  await closed(page);
});

test("on a phone the form that is shown is in sight", withPage("admin/statements", async (page) => {
  await page.locator(".segments [aria-current]").waitFor();
  await eventually(async () => {
    const { right, width } = await page.locator(".segments [aria-current]").evaluate((element) => ({ right: element.getBoundingClientRect().right, width: innerWidth }));
    assert.ok(right <= width, `${right} of ${width}`);
  });
  await page.locator("td.statement").first().waitFor();
  const widths = await page.locator("td.statement").evaluateAll((all) => all.map((each) => each.clientWidth));
  assert.ok(Math.min(...widths) > 150, `a statement has ${Math.min(...widths)} pixels`);
}, { viewport: { width: 390, height: 780 } }));
