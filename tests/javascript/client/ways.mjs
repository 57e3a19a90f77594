// Transactions, batches, streams, bulk rows, versions, branches, sessions: what works when all is well.
import assert from "node:assert/strict";
import { collected, connect, database, done, failed, key, next, sql, SqlError, url } from "./harness.mjs";

await sql`CREATE TABLE t (id INT PRIMARY KEY, n INT NOT NULL)`;
const rows = () => sql`SELECT id, n FROM t ORDER BY id`.with({ arrays: true });

// --- transactions
assert.equal(await sql.transaction(async (tx) => {
  await tx`INSERT INTO t VALUES (1, 10)`;
  assert.deepEqual(await tx`SELECT n FROM t`, [{ n: 10 }]);
  assert.deepEqual(await rows(), []);
  return "result";
}), "result");
const mine = new Error("mine");
assert.equal(await failed(sql.transaction(async (tx) => {
  await tx`DELETE FROM t`;
  throw mine;
})), mine);
assert.deepEqual(await rows(), [[1, 10]]);

// A conflict runs the function again, on the newest data; its side effects are there twice.
let runs = 0;
await sql.transaction(async (tx) => {
  const [{ n }] = await tx`SELECT n FROM t WHERE id = 1`;
  if (++runs < 3) await sql`UPDATE t SET n = n + 1 WHERE id = 1`;
  await tx`UPDATE t SET n = ${n * 2} WHERE id = 1`;
});
assert.deepEqual([runs, await rows()], [3, [[1, 24]]]);
runs = 0;
const conflict = await failed(sql.transaction(async (tx) => {
  runs += 1;
  await tx`SELECT n FROM t`;
  await sql`UPDATE t SET n = n + 1`;
  await tx`UPDATE t SET n = 0`;
}, { retries: 2 }));
assert.deepEqual([runs, conflict.code, conflict.retryable, conflict.conflict.table], [3, "40001", true, "t"]);

// Nested ones are savepoints; an error that is caught inside undoes the inner one alone.
await sql.transaction(async (tx) => {
  await tx`INSERT INTO t VALUES (2, 2)`;
  const error = await failed(tx.transaction(async (inner) => {
    await inner`INSERT INTO t VALUES (3, 3)`;
    await inner.transaction((innermost) => innermost`INSERT INTO t VALUES (4, 4)`);
    await inner`INSERT INTO t VALUES (1, 1)`;
  }));
  assert.equal(error.code, "23505", String(error.stack));
  await tx.transaction((inner) => inner`INSERT INTO t VALUES (5, 5)`);
  await tx.batch([tx`INSERT INTO t VALUES (6, 6)`, "INSERT INTO t VALUES (7, 7)"]);
  assert.equal((await collected(tx`SELECT id FROM t`)).length, 5);
});
assert.deepEqual((await rows()).map(([id]) => id), [1, 2, 5, 6, 7]);
// An error that is swallowed has failed the transaction all the same.
const swallowed = await failed(sql.transaction(async (tx) => {
  await tx`INSERT INTO t VALUES (1, 1)`.catch(() => 0);
}));
assert.equal(swallowed.code, "25P02");
const late = await sql.transaction((tx) => [tx]);
assert.equal((await failed(late[0]`SELECT 1`)).code, "QS030");
assert.equal((await failed(sql.transaction((tx) => tx`DELETE FROM t`, { readOnly: true }))).code, "25006");

// --- batches
const [made, found] = await sql.batch([
  sql`UPDATE t SET n = ${0} WHERE id < ${3}`, sql`SELECT count(*) AS n FROM t WHERE n = ${0}`]);
assert.deepEqual([made.affectedRows, found], [2, [{ n: 2 }]]);
const undone = await failed(sql.batch(["DELETE FROM t", "SELECT 1 / 0"]));
assert.deepEqual([undone.code, undone.statement, (await rows()).length], ["22012", 1, 5]);
assert.deepEqual(await sql.batch([]).catch((error) => error.status), 400);

// --- streams
await sql.insert("t", Array.from({ length: 5000 }, (_, at) => ({ id: 100 + at, n: at })));
assert.equal((await collected(sql`SELECT id FROM t WHERE id >= ${100}`)).length, 5000);
assert.deepEqual(await collected(sql`SELECT id FROM t WHERE FALSE`), []);
assert.deepEqual(await collected(sql`SELECT 1 AS a`.with({ arrays: true })), [[1]]);
let seen = 0;
for await (const { id } of sql`SELECT id FROM t ORDER BY id`) if (++seen && id === 150) break;
assert.equal(seen, 56);
const halfway = sql`SELECT 1 / (n - 3000) AS x FROM t WHERE id >= 100 ORDER BY id`[Symbol.asyncIterator]();
assert.deepEqual(await next(halfway), { x: 0 });
assert.equal((await failed((async () => { for await (const row of halfway) seen += 0 * row.x; })())).code, "22012");
assert.equal((await failed(collected(sql`SELECT nope FROM t`))).code, "42703");
assert.deepEqual(await collected(sql`UPDATE t SET n = 1 WHERE id = 1 RETURNING n`), [{ n: 1 }]);

// --- rows in bulk
async function* many() {
  for (let id = 10_000; id < 30_000; id++) yield [id, 1];
}
const loaded = await sql.insert("t", many(), { columns: ["id", "n"] });
assert.equal(loaded.affectedRows, 20_000);
assert.equal((await sql.insert("t", [{ id: 1, n: 2 }, { id: 8, n: 8 }], { onConflict: "ignore" })).affectedRows, 1);
assert.equal((await sql.insert("t", "id,n\n9,9\n", { format: "csv" })).affectedRows, 1);
const second = await failed(sql.insert("t", [{ id: 50, n: 1 }, { id: 51, n: null }]));
assert.deepEqual([second.code, second.row, (await sql`SELECT 1 FROM t WHERE id = 50`).length], ["23502", 2, 0]);
async function* endless(wrong) {
  for (let id = 100_000; ; id++) yield { id, n: id === wrong ? null : 1 };
}
const early = await failed(sql.insert("t", endless(100_001)));
assert.ok((early.code === "23502" && early.row === 2) || early.applied === "no", early);
assert.deepEqual(await sql`SELECT 1 FROM t WHERE id >= 100000`, []);
const ours = await failed(sql.insert("t", (async function* () {
  yield { id: 60, n: 1 };
  throw mine;
})()));
assert.deepEqual([ours, await sql`SELECT 1 FROM t WHERE id = 60`], [mine, []]);
assert.ok(await failed(sql.insert("t", [[1, 2]])) instanceof TypeError);
assert.ok(await failed(sql.insert("t", [[1, 2]], { columns: ["id"] })) instanceof TypeError);
assert.deepEqual(await collected(sql.rows("t", { columns: ["id"], where: "id > $1 AND n = $2", params: [9_999, 1],
  order: "id DESC", limit: 2 })), [{ id: 29_999 }, { id: 29_998 }]);
assert.equal((await failed(collected(sql.rows("nope")))).code, "42P01");

// --- versions and branches
const { version } = await sql`SELECT 1`;
await sql`DELETE FROM t`;
assert.ok((await sql.asOf(version)`SELECT id FROM t`).length > 20_000);
assert.equal((await collected(sql.rows("t", { asOf: version, limit: 3 }))).length, 3);
assert.equal(sql.version(), version + 1);
const past = new Date(Date.now() + 60_000);
assert.equal((await failed(sql.asOf(past)`SELECT 1`)).status, 400);
const branch = await sql.branch(`${database}-b`, { asOf: version });
await branch`UPDATE t SET n = -1`;
assert.deepEqual([(await branch`SELECT max(n) AS n FROM t`)[0].n, await rows()], [-1, []]);
const compared = { fromDatabase: database, from: version, tables: "t" };
const first = await branch.difference({ ...compared, limit: 1 });
assert.deepEqual([first.from, first.changes.length, first.changes[0].after.n], [version, 1, -1]);
const { changes } = await branch.difference({ ...compared, to: first.to, cursor: first.next_cursor, limit: 1 });
assert.equal(changes[0].key.id, first.changes[0].key.id + 1);
const { counts: [{ update }] } = await branch.difference({ ...compared, count: true });
assert.ok(update > 20_000, update);
assert.equal((await sql.difference({ from: version, count: true })).counts[0].delete, update);
await sql.call("DELETE", `/v1/databases/${database}-b`);
assert.equal((await failed(branch`SELECT 1`)).status, 404);
const kept = await sql.batch(["INSERT INTO t VALUES (1, 1)"], { branch: true });
assert.deepEqual([(await sql.with({ database: kept.database })`SELECT id FROM t`), await rows()], [[{ id: 1 }], []]);
const dry = await sql`INSERT INTO t VALUES (1, 1)`.with({ dryRun: true });
assert.deepEqual([dry.diff[0].op, await rows()], ["insert", []]);
assert.equal((await failed(sql`SELECT 1`.with({ maxRosw: 1 }))).status, 400);

// --- reads by URL, versions seen, exactly once
assert.deepEqual(await sql.read`SELECT ${[1, 2]}::int[] AS a, ${"ü&="} AS t, ${7n} AS n`, [{ a: [1, 2], t: "ü&=", n: 7 }]);
assert.equal((await failed(sql.read`DELETE FROM t`)).status, 405);
const near = sql.with({ consistency: "session" });
const { version: wrote } = await near`INSERT INTO t VALUES (77, 7)`;
assert.ok((await near`SELECT id FROM t`).version >= wrote && near.version() >= wrote);
assert.deepEqual(await near.transaction((tx) => tx`SELECT id FROM t`), [{ id: 77 }]);
const placed = () => sql`INSERT INTO t VALUES (78, 7)`.with({ idempotencyKey: "order-78" });
assert.deepEqual([(await placed()).replayed, (await placed()).replayed], [false, true]);
assert.equal((await sql`INSERT INTO t VALUES (79, 7)`.with({ idempotencyKey: true })).affectedRows, 1);

// --- sessions
const exchanged = connect(url, { key, database, session: true });
assert.deepEqual(await Promise.all([exchanged`SELECT 1 AS a`, exchanged`SELECT 2 AS a`]), [[{ a: 1 }], [{ a: 2 }]]);
const narrow = connect(url, { key, database, session: { scopes: ["data:read"] } });
assert.equal((await failed(narrow`DELETE FROM t`)).status, 403);
const { token } = await sql.session({ database });
const browser = connect(url, { key: async () => token });
assert.deepEqual(await browser`SELECT id FROM t WHERE id = 77`, [{ id: 77 }]);
await browser.call("DELETE", "/v1/session");
assert.equal((await failed(browser`SELECT 1`)).status, 401);
let asked = 0;
const renewing = connect(url, { database, key: async () => (asked++ ? key : token) });
assert.deepEqual([await renewing`SELECT 1 AS a`, asked], [[{ a: 1 }], 2]);

// --- keys with statements
const record = await sql.call("POST", "/v1/keys", { name: "browsers", databases: [database], bound: ["low"],
  statements: { above: "SELECT id FROM t WHERE id > :low AND id < :high" } });
const bound = await connect(url, { key: record.key }).session({ bind: { low: 77 } });
const page = connect(url, { key: bound.token });
assert.deepEqual(await page.named("above", { high: 79 }), [{ id: 78 }]);
assert.deepEqual((await page.batch([page.named("above", { high: 79 })]))[0], [{ id: 78 }]);
assert.deepEqual(await page.named("above", { high: 79 }).with({ read: true }), [{ id: 78 }]);
assert.equal((await failed(page`SELECT 1`)).status, 403);

// --- errors
const error = await failed(sql`SELECT ${1} FROM nowhere`);
assert.ok(error instanceof SqlError && error instanceof Error);
assert.deepEqual([error.code, error.condition, error.position, error.status, error.applied, error.statement],
  ["42P01", "undefined_table", 16, 200, "no", 0]);
assert.match(error.requestId, /./);
const taken = await failed(sql`INSERT INTO t VALUES (77, 1)`);
assert.deepEqual([taken.code, taken.table, taken.constraint], ["23505", "t", "t_pkey"]);
done();
