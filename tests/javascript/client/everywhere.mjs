// What every runtime has to do, with nothing of Node: streams that end early, signals, bodies that fail.
import assert from "node:assert/strict";
import { changed, collected, connect, database, done, failed, key, next, sql, url } from "./harness.mjs";

await sql`CREATE TABLE e (id INT PRIMARY KEY, n INT NOT NULL)`;
await sql`INSERT INTO e VALUES (1, 1), (2, 2)`;
const count = async () => (await sql`SELECT count(*)::int AS n FROM e`)[0].n;

// --- streams without an end tell of changes, and end when the reader leaves
const live = sql`SELECT id, n FROM e WHERE id < ${100} ORDER BY id`.live();
assert.deepEqual((await next(live)).rows.map(({ n }) => n), [1, 2]);
const { version: since } = await sql`SELECT 1`;
const feed = sql.changes({ since, tables: ["e"] });
await sql`UPDATE e SET n = 10 WHERE id = 1`;
assert.deepEqual((await changed(live)).rows.map(({ n }) => n), [10, 2]);
assert.deepEqual((await next(feed)).changes.map(({ after }) => after.n), [10]);
for (const items of [live, feed]) {
  await items.return();
  assert.deepEqual(await items.next(), { done: true, value: undefined });
}
let seen = 0;
for await (const { a } of sql`SELECT a FROM generate_series(1, 1000000) a`) if (++seen && a === 10) break;
assert.equal(seen, 10);

// --- signals, by their reason, wherever the request is
const reason = new Error("enough");
const stopped = async (run) => {
  const controller = new AbortController();
  const running = failed(run(controller.signal, () => controller.abort(reason)));
  setTimeout(() => controller.abort(reason), 150);
  assert.equal(await running, reason, String(run));
};
const slow = "SELECT count(*) FROM generate_series(1, 3000) a, generate_series(1, 3000) b, generate_series(1, 3000) c";
await stopped((signal) => sql.unsafe(slow).with({ signal }));
await stopped((signal) => sql.unsafe(slow).with({ signal, read: true }));
await stopped(async (signal, stop) => {
  for await (const { a } of sql`SELECT a FROM generate_series(1, 1000000) a`.with({ signal })) a === 10 && stop();
});
await stopped(async (signal) => { for await (const item of sql`SELECT n FROM e`.live({ signal })) assert.ok(item); });
await stopped(async (signal) => { for await (const item of sql.changes({ signal })) assert.ok(item); });
await stopped((signal) => sql.transaction((tx) => tx.unsafe(slow), { signal }));
await stopped((signal) => sql.insert("e", (async function* () {
  for (let id = 1000; ; id++) {
    yield { id, n: 1 };
    if (id % 100 === 0) await new Promise((resolve) => setTimeout(resolve, 5));
  }
})(), { signal }));
assert.equal(await failed(sql`SELECT 1`.with({ signal: AbortSignal.abort(reason) })), reason);
assert.equal((await failed(sql.unsafe(slow).with({ signal: AbortSignal.timeout(50) }))).name, "TimeoutError");
assert.equal(await count(), 2);

// --- a body that fails applies nothing, whoever made it
const mine = new Error("mine");
const bytesOf = (text, error) => new ReadableStream({
  start(controller) {
    controller.enqueue(new TextEncoder().encode(text));
  },
  async pull(controller) {
    await new Promise((resolve) => setTimeout(resolve, 50));
    if (error) controller.error(error);
    else controller.close();
  },
});
for (const [format, text] of [["csv", "id,n\n60,1\n"], ["ndjson", '{"id": 60, "n": 1}\n']]) {
  const error = await failed(sql.insert("e", bytesOf(text, mine), { format }));
  assert.deepEqual([error, await count()], [mine, 2], format);
}
await sql`CREATE TABLE texts (t TEXT)`;
for (const text of ["t\nwhole\n", "t\ncut of", 't\n"in quotes\n']) {
  assert.equal(await failed(sql.insert("texts", bytesOf(text, mine), { format: "csv" })), mine);
}
assert.deepEqual(await sql`SELECT t FROM texts`, []);
assert.equal(await failed(sql.insert("e", (async function* () {
  yield { id: 60, n: 1 };
  throw mine;
})())), mine);
assert.equal(await count(), 2);
assert.equal((await sql.insert("e", bytesOf("id,n\n60,1\n61,1\n"), { format: "csv" })).affectedRows, 2);

// --- nobody is there: workerd does not say whether anything was sent
const nobody = connect("http://127.0.0.1:2", { key, retryMs: 100 });
const { code, applied } = await failed(nobody`SELECT 1`);
assert.ok(["08001 no", "08006 unknown"].includes(`${code} ${applied}`), code);

// --- one connection for all, with a session that is renewed
const exchanged = connect(url, { key, database, session: true });
const many = await Promise.all(Array.from({ length: 20 }, (_, at) => exchanged`SELECT ${at}::int AS a`));
assert.deepEqual(many.map(([{ a }]) => a), Array.from({ length: 20 }, (_, at) => at));
assert.equal((await collected(exchanged`SELECT id FROM e`)).length, 4);
done();
