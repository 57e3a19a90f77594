// The hook of React: rows that follow changes, another query, an error, a connection that breaks.
import assert from "node:assert/strict";
import { createElement } from "react";
import { act, create } from "react-test-renderer";
import { useLive } from "qserver-client/react";
import { connect, database, done, key, proxy, sql, until } from "./harness.mjs";

globalThis.IS_REACT_ACT_ENVIRONMENT = true;
const said = console.error;
console.error = (text, ...more) => /deprecated/.test(text) || said(text, ...more);

await sql`CREATE TABLE t (id INT PRIMARY KEY, n INT)`;
await sql`INSERT INTO t VALUES (1, 1), (2, 2)`;
const way = await proxy();
const far = connect(way.url, { key, database });

let state, renderings = 0;
function Shown({ ask }) {
  renderings += 1;
  state = useLive(ask());
  return state.rows.map(({ n }) => n).join();
}

async function shows(holds) {
  while (!holds()) await act(async () => new Promise((resolve) => setTimeout(resolve, 5)));
}

let tree;
const above = (least) => () => far`SELECT id, n FROM t WHERE id > ${least}`;
await act(async () => { tree = create(createElement(Shown, { ask: above(0) })); });
assert.deepEqual([state.isLoading, state.rows], [true, []]);
await shows(() => state.rows.length === 2);
assert.equal(tree.toJSON(), "1,2");
const [, kept] = state.rows;
await sql`UPDATE t SET n = 10 WHERE id = 1`;
await shows(() => tree.toJSON() === "10,2");
assert.equal(state.rows[1], kept);

// The same question again opens nothing; another one begins anew, and never shows old rows.
const { opened } = way;
await act(async () => { tree.update(createElement(Shown, { ask: above(0) })); });
assert.deepEqual([way.opened, tree.toJSON()], [opened, "10,2"]);
await act(async () => { tree.update(createElement(Shown, { ask: above(1) })); });
assert.ok(state.rows.every(({ id }) => id > 1));
await shows(() => tree.toJSON() === "2");

way.closed = true;
way.cut();
await shows(() => state.isOffline);
assert.equal(tree.toJSON(), "2");
way.closed = false;
await shows(() => !state.isOffline);
await sql`INSERT INTO t VALUES (3, 3)`;
await shows(() => tree.toJSON() === "2,3");

await act(async () => { tree.update(createElement(Shown, { ask: () => far`SELECT nope FROM t` })); });
await shows(() => state.error?.code === "42703");
await act(async () => { tree.update(createElement(Shown, { ask: () => null })); });
assert.deepEqual([state.isLoading, state.rows], [false, []]);

// What is taken off the page follows nothing any more.
await act(async () => { tree.update(createElement(Shown, { ask: above(0) })); });
await shows(() => state.rows.length === 3);
await act(async () => tree.unmount());
const before = renderings;
await until(() => true);
await sql`DELETE FROM t`;
assert.equal(renderings, before);
way.end();
done();
