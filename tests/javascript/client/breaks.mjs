// What breaks: connections, servers, keys, proxies, readers that leave. Nothing is lost or applied twice.
import assert from "node:assert/strict";
import { createServer } from "node:http";
import { once } from "node:events";
import { ask, changed, collected, connect, database, done, failed, key, next, proxy, sql, until, url } from "./harness.mjs";

await sql`CREATE TABLE t (id INT PRIMARY KEY, n INT NOT NULL)`;
await sql`INSERT INTO t VALUES (1, 1), (2, 2)`;
const way = await proxy();
const retried = [];
const far = connect(way.url, { key, database, onRetry: (error) => retried.push(error.code) });
const numbers = (told) => [told.inserted, told.deleted, told.rows].map((rows) => rows.map(({ n }) => n));

// --- a live query and a feed that break in between, with changes that nobody could tell
const live = far`SELECT id, n FROM t WHERE id < ${100} ORDER BY id`.live();
const first = await next(live);
assert.deepEqual(numbers(first), [[1, 2], [], [1, 2]]);
await sql`UPDATE t SET n = 10 WHERE id = 1`;
const second = await next(live);
assert.deepEqual(numbers(second), [[10], [1], [10, 2]]);
assert.equal(second.rows[1], first.rows[1]);
const { version: since } = await sql`SELECT 1`;
const feed = far.changes({ since, tables: ["t"] });
await sql`INSERT INTO t VALUES (3, 3)`;
assert.deepEqual((await next(feed)).changes.map(({ after }) => after.n), [3]);
assert.deepEqual(numbers(await next(live)), [[3], [], [10, 2, 3]]);

way.closed = true;
way.cut();
const waiting = [changed(live), next(feed)];
await sql`DELETE FROM t WHERE id = 3`;
await sql.batch(["INSERT INTO t VALUES (4, 4)", "UPDATE t SET n = 20 WHERE id = 2"]);
await until(() => way.refused >= 4);
way.closed = false;
const [third, missed] = await Promise.all(waiting);
assert.deepEqual(numbers(third), [[20, 4], [2, 3], [10, 20, 4]]);
assert.equal(third.rows[0], second.rows[0]);
const told = [missed, await next(feed)].flatMap(({ changes }) => changes);
assert.deepEqual(told.map(({ op }) => op).sort(), ["delete", "insert", "update"]);
assert.ok(retried.length >= 4 && retried.every((code) => ["08006", "08001"].includes(code)), String(retried));

// The server is gone and comes back, on another port; both go on.
const before = retried.length;
way.port = Number(await ask("restart"));
const here = connect(`http://127.0.0.1:${way.port}`, { key, database });
await here`INSERT INTO t VALUES (5, 5)`;
assert.deepEqual(numbers(await changed(live)), [[5], [], [10, 20, 4, 5]]);
assert.deepEqual((await next(feed)).changes.map(({ after }) => after.n), [5]);
assert.ok(retried.length > before);

// A server that says nothing any more is not waited for.
const silent = far`SELECT n FROM t WHERE id = 5`.live({ silenceMs: 300 });
await next(silent);
const { opened } = way;
way.muted = true;
const hanging = changed(silent);
await until(() => way.opened > opened);
way.pass();
await here`UPDATE t SET n = 55 WHERE id = 5`;
assert.deepEqual(numbers(await hanging), [[55], [5], [55]]);
await silent.return();
await changed(live), await next(feed);

// A table that is gone ends a live query, and so does a reader who leaves.
await here`CREATE TABLE gone (id INT PRIMARY KEY)`;
const dying = here`SELECT id FROM gone`.live();
assert.deepEqual((await next(dying)).rows, []);
await here`DROP TABLE gone`;
assert.equal((await failed(next(dying))).code, "42P01");
for (const items of [live, feed]) {
  await items.return();
  assert.deepEqual(await items.next(), { done: true, value: undefined });
}

// --- a signal also ends the wait until a request is sent again
way.closed = true;
way.cut();
const given = far.read`SELECT 1`.with({ signal: AbortSignal.timeout(150), retryMs: 60_000 });
assert.equal((await failed(given)).name, "TimeoutError");
way.closed = false;

// --- retries: what cannot be applied twice is sent again, and nothing else
/** What comes of a request whose first answer is lost. */
const lose = async (run) => {
  way.lose();
  const running = run().then((value) => value, (error) => error);
  await until(() => way.lost > 0);
  way.pass();
  return running;
};
const lost = await lose(() => far`UPDATE t SET n = n + 1 WHERE id = 4`);
assert.deepEqual([lost.code, lost.applied], ["08006", "unknown"]);
assert.deepEqual(await here`SELECT n FROM t WHERE id = 4`, [{ n: 5 }]);
const kept = await lose(() => far`UPDATE t SET n = n + 1 WHERE id = 4`.with({ idempotencyKey: true }));
assert.deepEqual([kept.affectedRows, kept.replayed], [1, true]);
assert.deepEqual(await here`SELECT n FROM t WHERE id = 4`, [{ n: 6 }]);
assert.deepEqual(await lose(() => far.read`SELECT n FROM t WHERE id = 4`), [{ n: 6 }]);
let runs = 0;
const committing = far.transaction(async (tx) => {
  runs += 1;
  await tx`UPDATE t SET n = n + 1 WHERE id = 4`;
  way.lose(); // the answer of the commit
});
await until(() => way.muted && way.lost > 0);
way.pass();
await committing;
assert.deepEqual([runs, await here`SELECT n FROM t WHERE id = 4`], [1, [{ n: 7 }]]);
way.end();

// --- what is not the server: a proxy's page, a page of success, and one that repeats what it got
for (const status of [502, 200, 404]) {
  const page = createServer((request, response) => {
    response.writeHead(status, { "content-type": "text/html" });
    response.end(`<h1>Sorry</h1>${request.headers.authorization}`);
  }).listen(0, "127.0.0.1");
  await once(page, "listening");
  const there = connect(`http://127.0.0.1:${page.address().port}`, { key, retryMs: 100 });
  for (const run of [() => there`SELECT 1`, () => next(there`SELECT 1`.live()), () => collected(there`SELECT 1`)]) {
    const error = await failed(run());
    assert.deepEqual([error.code, error.status, error.applied], ["08000", status, "unknown"]);
    assert.ok(error.detail.includes("Sorry") && !`${JSON.stringify(error)}${error.stack}`.includes(key));
  }
  page.close();
}
const nobody = connect(way.url, { key, retryMs: 50 });
const unreached = await failed(nobody`SELECT 1`);
assert.deepEqual([unreached.code, unreached.applied], ["08001", "no"]);

// --- a key that is revoked ends what it has opened, and no message has it
const record = await here.call("POST", "/v1/keys", { name: "short", scopes: ["data:read", "data:write"] });
const short = connect(`http://127.0.0.1:${way.port}`, { key: record.key, database });
const [following, changing] = [short`SELECT n FROM t`.live(), short.changes()];
await next(following);
const ended = [failed(next(following)), failed(next(changing))];
await here.call("DELETE", `/v1/keys/${record.id}`);
for (const error of [...await Promise.all(ended), await failed(short`SELECT 1`)]) {
  assert.equal(error.code, "QS002", error.message);
  assert.ok(!`${JSON.stringify(error)}${error.stack}`.includes(record.key));
}
done();
