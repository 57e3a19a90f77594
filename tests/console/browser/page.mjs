// A browser, a page of the console in it, and what tests do with both. Python starts the server and
// says where it is: URL, KEY. A page that writes an error to its console, or breaks its own security
// policy, fails the test that used it.

import assert from "node:assert/strict";
import { readFile } from "node:fs/promises";
import { createRequire } from "node:module";
import { after, before } from "node:test";
import { chromium } from "playwright-core";

export const { URL: ADDRESS, KEY, SCREENSHOTS } = process.env;
const ARGUMENTS = ["--no-sandbox", "--disable-gpu", "--disable-background-networking", "--no-first-run"];
const PATIENCE_MS = Number(process.env.PATIENCE_MS ?? 60_000);
const AXE = createRequire(import.meta.url).resolve("axe-core/axe.min.js");

let browser;
before(async () => {
  const executablePath = process.env.CHROMIUM;
  browser = await chromium.launch({ executablePath, headless: true, args: ARGUMENTS });
});
after(() => browser?.close());

/** A page that has opened the console; `expected` are patterns of errors that a test is about. */
export async function opened(options = {}) {
  const { expected = [], ...rest } = options;
  const context = await browser.newContext({ viewport: { width: 1280, height: 800 }, ...rest });
  await context.grantPermissions(["clipboard-read", "clipboard-write"]);
  context.setDefaultTimeout(PATIENCE_MS);
  const page = await context.newPage();
  page.problems = [];
  const told = (text) => {
    if (!expected.some((pattern) => pattern.test(text))) page.problems.push(text);
  };
  page.on("pageerror", (error) => told(String(error.stack)));
  page.on("console", (message) => message.type() === "error" && told(message.text()));
  page.on("request", (request) => {
    const url = request.url();
    if (!url.startsWith(ADDRESS) && !url.startsWith("blob:")) told(`loaded from elsewhere: ${url}`);
  });
  await page.goto(`${ADDRESS}/console`);
  return page;
}

/** A page that has signed in, at a part. */
export async function signedIn(part = "sql", options = {}) {
  const page = await opened(options);
  await signIn(page);
  if (part !== "sql") await page.goto(`${ADDRESS}/console#/${part}`);
  return page;
}

export async function signIn(page, key = KEY) {
  await page.getByLabel("API key").fill(key);
  await page.getByRole("button", { name: "Sign in" }).click();
  await page.getByRole("navigation", { name: "Parts" }).waitFor();
}

/** Close a page, and see that nothing went wrong in it. */
export async function closed(page) {
  assert.deepEqual(page.problems, []);
  await page.context().close();
}

/** A test with a page of its own. */
export function withPage(part, work, options = {}) {
  return async () => {
    const page = await signedIn(part, options);
    try {
      await work(page);
    } catch (error) {
      error.message += `\nThe page: ${JSON.stringify(page.problems)} ${(await page.locator("body").innerText()).slice(0, 600)}`;
      throw error;
    }
    await closed(page);
  };
}

/** Send a request past the page; returns what was answered. */
export async function asked(method, path, body, headers = {}) {
  const response = await fetch(ADDRESS + path, {
    method,
    headers: { Authorization: `Bearer ${KEY}`, "Content-Type": "application/json", ...headers },
    body: body === undefined ? undefined : JSON.stringify(body),
  });
  const text = await response.text();
  const answer = text === "" ? null : JSON.parse(text);
  assert.notEqual(answer?.success, false, text);
  return answer;
}

export const query = (sql, database = "main") => asked("POST", "/v1/query", { sql, database });

/** Put a text into the editor, in place of what is there. */
export async function type(page, text) {
  const editor = page.getByRole("textbox", { name: /SQL editor/ });
  await editor.click();
  await page.keyboard.press("Control+a");
  await page.keyboard.press("Delete");
  await page.keyboard.insertText(text);
}

export async function run(page, text) {
  await type(page, text);
  await page.keyboard.press("Control+Enter");
  await page.locator(".result:not([aria-busy])").waitFor();
}

/** The texts of the cells in sight, row by row. */
export function cells(page, grid = ".grid") {
  return page.locator(grid).first().locator(".grid-row").evaluateAll((rows) =>
    rows.map((row) => [...row.querySelectorAll(".grid-cell")].map((cell) => cell.textContent)),
  );
}

/** Ask again until it holds: a page draws what it was told a moment later. */
export async function eventually(holds) {
  for (const until = Date.now() + PATIENCE_MS; ; await new Promise((resolve) => setTimeout(resolve, 50))) {
    try {
      return await holds();
    } catch (error) {
      if (Date.now() > until) throw error;
    }
  }
}

/** Write a picture for the docs, if they are wanted. */
export async function picture(page, name) {
  if (!SCREENSHOTS) return;
  await page.waitForTimeout(300);
  await page.screenshot({ path: `${SCREENSHOTS}/${name}.png`, scale: "css" });
}

/** What axe-core finds that is serious or critical, in words. */
export async function barriers(page) {
  // The policy of the page lets no script in but its own, so axe comes through the debugger.
  await page.evaluate(await readFile(AXE, "utf8"));
  const { violations } = await page.evaluate(() => window.axe.run(document));
  return violations
    .filter(({ impact }) => impact === "serious" || impact === "critical")
    .map(({ id, nodes }) => `${id}: ${nodes.map((node) => node.html.slice(0, 200) + node.failureSummary).join(" | ")}`);
}
