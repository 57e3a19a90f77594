// The part SQL, on a real server in a real browser.

import assert from "node:assert/strict";
import { test } from "node:test";
import { asked, barriers, cells, closed, eventually, opened, picture, query, run, signedIn, signIn, type, withPage, ADDRESS } from "./page.mjs";

const words = (page) => page.locator(".result-words").textContent();

test("a key is exchanged for a session, and is nowhere afterwards", async () => {
  const page = await opened();
  assert.deepEqual(await barriers(page), []);
  await picture(page, "signin");
  await signIn(page);
  const kept = await page.evaluate(() => JSON.stringify([{ ...localStorage }, { ...sessionStorage }, document.cookie, location.href, document.documentElement.outerHTML]));
  assert.ok(!kept.includes("svc_k_"), "the key is kept");
  assert.match(await page.evaluate(() => sessionStorage["qserver.session"]), /svc_s_/);
  assert.ok(!(await page.evaluate(() => JSON.stringify({ ...localStorage }))).includes("svc_s_"));
  await page.reload();
  await page.getByRole("navigation", { name: "Parts" }).waitFor();
  await closed(page);
});

test("the form is there after the first paint, and how long that takes is told", async (t) => {
  const page = await opened();
  const paints = () => performance.getEntriesByType("paint").map(({ name, startTime }) => `${name} ${Math.round(startTime)} ms`);
  await page.getByLabel("API key").waitFor();
  t.diagnostic(`cold: ${(await page.evaluate(paints)).join(", ")}`);
  await page.reload();
  await page.getByLabel("API key").waitFor();
  t.diagnostic(`with files kept: ${(await page.evaluate(paints)).join(", ")}`);
  await closed(page);
});

test("a wrong key is told, and its field is empty again", async () => {
  const page = await opened({ expected: [/401/] });
  await page.getByLabel("API key").fill("svc_k_wrongwrongwrongwrong");
  await page.getByRole("button", { name: "Sign in" }).click();
  await page.getByText("does not know this key").waitFor();
  assert.equal(await page.getByLabel("API key").inputValue(), "");
  await closed(page);
});

test("signing out ends the session at the server", async () => {
  const page = await signedIn();
  const token = await page.evaluate(() => JSON.parse(sessionStorage["qserver.session"]).token);
  await page.getByRole("button", { name: "Sign out" }).click();
  await page.getByRole("dialog").getByRole("button", { name: "Sign out", exact: true }).click();
  await page.getByLabel("API key").waitFor();
  const answer = await fetch(`${ADDRESS}/v1/organization`, { headers: { Authorization: `Bearer ${token}` } });
  assert.equal(answer.status, 401);
  assert.equal(await page.evaluate(() => sessionStorage.length), 0);
  await closed(page);
});

test("a session that was revoked leads back to the form", async () => {
  const { key, id } = await asked("POST", "/v1/keys", { name: "short", scopes: ["data:read"] });
  const page = await opened({ expected: [/401/] });
  await signIn(page, key);
  await page.waitForLoadState("networkidle");
  await type(page, "SELECT 1"); // before, as any request of the page's own may be the first refused
  await asked("DELETE", `/v1/keys/${id}`);
  await page.keyboard.press("Control+Enter");
  await page.getByText("Your session has ended").waitFor();
  await closed(page);
});

test("a statement is run, and its rows are shown", withPage("sql", async (page) => {
  await run(page, "SELECT n AS id, 'name ' || n AS name, 9007199254740993 AS large, NULL AS none FROM generate_series(1, 500) AS t(n)");
  await eventually(async () => assert.match(await words(page), /^500 rows/));
  await eventually(async () => assert.deepEqual((await cells(page))[0], ["1", "name 1", "9007199254740993", "NULL"]));
  assert.ok((await page.locator(".grid-row").count()) < 80, "only rows in sight are elements");
  await page.getByRole("grid", { name: "Result" }).focus();
  await page.keyboard.press("Control+End");
  await page.getByText("name 500").waitFor();
  assert.deepEqual(await barriers(page), []);
}));

test("the statement at the cursor is run, or the selection alone", withPage("sql", async (page) => {
  await run(page, "SELECT 1 AS a; SELECT 2 AS b");
  await eventually(async () => assert.deepEqual(await cells(page), [["2"]]));
  await page.keyboard.press("Control+Home");
  for (let at = 0; at < "SELECT 1".length; at += 1) await page.keyboard.press("Shift+ArrowRight");
  await page.keyboard.press("Control+Enter");
  await page.locator(".grid-name", { hasText: "?column?" }).waitFor();
  await eventually(async () => assert.deepEqual(await cells(page), [["1"]]));
  await type(page, "CREATE TABLE together (id INT PRIMARY KEY); INSERT INTO together VALUES (1), (2); SELECT count(*) FROM together");
  await page.getByRole("button", { name: "Run all" }).click();
  await page.getByText("3 statements as one transaction").waitFor();
  await eventually(async () => assert.deepEqual(await cells(page), [["2"]]));
}));

test("an error is marked where it is", withPage("sql", async (page) => {
  await run(page, "SELECT 1;\nSELECT 'ä😀', nonsense_name FROM generate_series(1, 2)");
  await page.locator(".error-box").waitFor();
  assert.match(await page.locator(".error-box").innerText(), /nonsense_name[^]*42703 · line 2/);
  await eventually(async () => assert.equal(await page.locator(".cm-wrong").textContent(), "nonsense_name"));
}));

test("parameters are typed in fields", withPage("sql", async (page) => {
  await type(page, "SELECT :who || '!' AS greeting, :count + 1 AS more, '?', $$ :no $$");
  await page.getByLabel(":who").fill("Ada");
  await page.getByLabel(":count").fill("41");
  await eventually(async () => assert.equal(await page.locator(".parameter").count(), 2));
  await page.getByRole("button", { name: "Run", exact: true }).click();
  await page.getByText("Ada!").waitFor();
  await eventually(async () => assert.deepEqual((await cells(page))[0].slice(0, 2), ["Ada!", "42"]));
}));

test("tabs and history survive a reload", withPage("sql", async (page) => {
  await run(page, "SELECT 'in the history'");
  await page.getByRole("button", { name: "New query" }).click();
  await type(page, "SELECT 'second tab'");
  await page.reload();
  await page.getByRole("tab", { name: /second tab/ }).waitFor();
  await page.locator(".cm-content", { hasText: "second tab" }).waitFor();
  await page.getByRole("tab", { name: /in the history/ }).click();
  await page.locator(".cm-content", { hasText: "in the history" }).waitFor();
  await page.getByRole("button", { name: "History" }).click();
  await page.getByRole("button", { name: /SELECT 'in the history'/ }).click();
  await eventually(async () => assert.equal(await page.getByRole("tab").count(), 3));
}));

test("names of the catalog are completed", async () => {
  await query("CREATE TABLE completed_table (first_column INT, second_column TEXT)");
  await withPage("sql", async (page) => {
    await type(page, "SELECT * FROM comple");
    await page.keyboard.press("Control+Space");
    await page.locator(".cm-tooltip-autocomplete li", { hasText: "completed_table" }).click();
    await page.keyboard.insertText(" WHERE ");
    await page.keyboard.type("second");
    await page.locator(".cm-tooltip-autocomplete li", { hasText: "second_column" }).waitFor();
  })();
});

test("a plan is a tree whose costly nodes are marked", async () => {
  await query("CREATE TABLE planned (id INT PRIMARY KEY, other INT)");
  await query("INSERT INTO planned SELECT n, n % 10 FROM generate_series(1, 1000) AS t(n)");
  await withPage("sql", async (page) => {
    await type(page, "SELECT a.other, count(*) FROM planned a JOIN planned b ON a.other = b.id GROUP BY 1 ORDER BY 2");
    await page.getByRole("button", { name: "Explain" }).click();
    await page.locator(".plan-node.is-costly").first().waitFor();
    await eventually(async () => assert.ok((await page.locator(".plan-node").count()) >= 4));
    await picture(page, "plan");
    await type(page, "DELETE FROM planned");
    await page.getByRole("button", { name: "Analyze" }).click();
    await page.getByText("Nothing was applied").waitFor();
    const { rows } = await query("SELECT count(*) AS n FROM planned");
    assert.equal(rows[0].n, 1000);
  })();
});

test("rows are drawn as a chart, shown as JSON and downloaded as CSV", withPage("sql", async (page) => {
  await run(page, "SELECT '2026-01-01'::date + n AS day, (100 + 40 * sin(n / 5.0))::int AS orders, 60 + n AS visits FROM generate_series(1, 60) AS t(n)");
  await page.getByRole("button", { name: "Chart" }).click();
  await page.getByRole("img", { name: "orders, visits by day" }).waitFor();
  await eventually(async () => assert.ok((await page.locator(".chart-svg path.line").count()) === 2));
  await picture(page, "chart");
  assert.deepEqual(await barriers(page), []);
  for (const kind of ["bar", "scatter"]) {
    await page.getByLabel("Kind").selectOption(kind);
    await page.locator(kind === "bar" ? ".chart-svg rect" : ".chart-svg circle").first().waitFor();
  }
  await page.getByRole("button", { name: "JSON" }).click();
  await page.locator(".json-view", { hasText: '"orders": 108' }).waitFor();
  const [file] = await Promise.all([page.waitForEvent("download"), page.getByRole("button", { name: "CSV" }).click()]);
  const { readFile } = await import("node:fs/promises");
  const text = await readFile(await file.path(), "utf8");
  assert.equal(text.split("\r\n")[0], "day,orders,visits");
  assert.equal(text.split("\r\n").length, 62);
}));

test("a request is shared without the session", withPage("sql", async (page) => {
  await run(page, "SELECT 'it''s' AS a");
  await page.getByRole("button", { name: "Share" }).click();
  const token = await page.evaluate(() => JSON.parse(sessionStorage["qserver.session"]).token);
  for (const form of ["curl", "Python", "JavaScript", "qserver sql"]) {
    await page.getByRole("dialog").getByLabel("As").selectOption({ label: form });
    const text = await page.locator("dialog pre").textContent();
    assert.ok(text.includes("it") && text.includes("QSERVER_KEY") && !text.includes(token), text);
  }
  assert.deepEqual(await barriers(page), []);
}));

test("a million rows go through a window of some thousands", withPage("sql", async (page) => {
  await run(page, "SELECT n AS id, repeat('x', 20) AS filler FROM generate_series(1, 1000000) AS t(n)");
  await page.getByText("There are more").waitFor();
  await eventually(async () => assert.match(await words(page), /^20,000 rows so far/));
  await page.getByRole("button", { name: "Next rows" }).click();
  await page.getByText(/^Rows 20,001 to 40,000/).first().waitFor();
  const client = await page.context().newCDPSession(page);
  const heap = async () => {
    await client.send("HeapProfiler.collectGarbage");
    return (await client.send("Runtime.getHeapUsage")).usedSize;
  };
  const before = await heap();
  await page.getByRole("button", { name: "To the end" }).click();
  await page.getByText(/The last rows, 980,001 to 1,000,000/).waitFor({ timeout: 180_000 });
  const grown = (await heap()) - before;
  assert.ok(grown < 20_000_000, `the page has grown by ${grown} bytes`);
  await eventually(async () => assert.equal((await cells(page))[0][0], "980001"));
}));

test("a statement that runs is cancelled, at the server too", withPage("sql", async (page) => {
  await type(page, "SELECT count(*) FROM generate_series(1, 100000) a(x), generate_series(1, 100000) b(y) WHERE x * y % 7 = 3");
  await page.keyboard.press("Control+Enter");
  await page.getByRole("button", { name: "Cancel" }).click();
  await page.locator(".error-box", { hasText: "Cancelled" }).waitFor();
  await run(page, "SELECT 'still here' AS a");
  await eventually(async () => assert.deepEqual(await cells(page), [["still here"]]));
}));

for (const [name, options] of [
  ["sql-light", { colorScheme: "light" }],
  ["sql-dark", { colorScheme: "dark" }],
  ["sql-phone", { colorScheme: "light", viewport: { width: 390, height: 780 } }],
]) {
  test(`no barrier in ${name}`, withPage("sql", async (page) => {
    await run(page, "-- the ten best customers of this year\nSELECT 'customer ' || n AS customer, n * 7 AS orders, n * 99.5 AS total,\n       TIMESTAMPTZ '2026-01-01Z' + n * interval '1 day' AS last_order\nFROM generate_series(1, 40) AS t(n)\nORDER BY orders DESC;");
    if (name !== "sql-phone") await picture(page, name);
    assert.deepEqual(await barriers(page), []);
    const sideways = await page.evaluate(() => document.documentElement.scrollWidth - innerWidth);
    assert.ok(sideways <= 0, "the page scrolls sideways");
  }, options));
}
