// A page in Chromium, of another origin than the server, from which it imports the client and asks.
import assert from "node:assert/strict";
import { createServer } from "node:http";
import { once } from "node:events";
import { chromium } from "playwright-core";
import { database, done, key, proxy, sql } from "./harness.mjs";

await sql`CREATE TABLE t (id INT PRIMARY KEY, n INT)`;
await sql`INSERT INTO t VALUES (1, 1)`;
const way = await proxy();
const pages = createServer((_, response) => {
  response.writeHead(200, { "content-type": "text/html" });
  response.end("<!doctype html><title>Page</title><pre></pre>");
}).listen(0, "127.0.0.1");
await once(pages, "listening");

const browser = await chromium.launch({
  executablePath: process.env.CHROMIUM,
  args: ["--headless", "--no-sandbox", "--disable-gpu", "--disable-background-networking", "--no-first-run"],
});
try {
  const page = await browser.newPage();
  const problems = [];
  page.on("pageerror", (error) => problems.push(String(error)));
  await page.goto(`http://127.0.0.1:${pages.address().port}/`);
  const found = await page.evaluate(async ({ url, key, database }) => {
    const { connect, SqlError } = await import(`${url}/client.js`);
    const sql = globalThis.sql = connect(url, { key, database, session: true });
    const [row] = await sql`SELECT ${[1, 2]}::int[] AS list, ${new Uint8Array([0, 255])}::bytea AS bytes,
      ${2n ** 60n + 1n} AS big, ${new Date(0)}::timestamptz AS at`;
    const inserted = await sql.insert("t", (async function* () { yield { id: 2, n: 2 }; yield { id: 3, n: 3 }; })());
    const names = [];
    for await (const { n } of sql`SELECT n FROM t ORDER BY id`) names.push(n);
    const error = await sql`SELECT nope`.catch((failure) => failure);
    const controller = new AbortController();
    const reading = sql.read`SELECT count(*) AS n FROM t`.with({ signal: controller.signal });
    const read = [await reading, await sql.read`SELECT count(*) AS n FROM t`].map(([{ n }]) => n);
    (async () => {
      for await (const { rows } of sql.live(sql`SELECT n FROM t WHERE id < ${3} ORDER BY id`)) {
        document.querySelector("pre").textContent = rows.map(({ n }) => n).join();
      }
    })();
    const list = [row.list, [...row.bytes], String(row.big), row.at.getTime()];
    return [list, inserted.affectedRows, names, error instanceof SqlError && error.code, read];
  }, { url: way.url, key, database });
  assert.deepEqual(found, [[[1, 2], [0, 255], String(2n ** 60n + 1n), 0], 2, [1, 2, 3], "42703", [3, 3]]);
  const shown = (text) => page.waitForFunction((wanted) => document.querySelector("pre").textContent === wanted, text);
  await shown("1,2");
  await sql`UPDATE t SET n = 10 WHERE id = 1`;
  await shown("10,2");
  way.closed = true;
  way.cut();
  await sql`UPDATE t SET n = 20 WHERE id = 2`;
  way.closed = false;
  await shown("10,20");
  assert.deepEqual(problems, []);
} finally {
  await browser.close();
  pages.close();
  way.end();
}
done();
