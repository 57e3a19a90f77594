// Values: what goes out as parameters comes back as it was, by the type of its column.
import assert from "node:assert/strict";
import { inspect } from "node:util";
import { connect, database, done, failed, key, sql, url } from "./harness.mjs";

await sql`CREATE TABLE v (id BIGINT PRIMARY KEY, a INT[], j JSONB, d DOUBLE PRECISION, b BYTEA,
  at TIMESTAMPTZ, n NUMERIC, t TEXT, bs BYTEA[], ds DOUBLE PRECISION[])`;

const bytes = Uint8Array.from({ length: 256 }, (_, at) => at);
const at = new Date("2026-01-02T03:04:05.678Z");
const deep = { list: [1, null, { at, big: 2n ** 80n, text: "\u2028 \"'\\ \u{1F600}" }], not: undefined };
const [row] = await sql`INSERT INTO v VALUES (${2n ** 63n - 1n}, ${[1, null, 3]}, ${deep}, ${NaN},
  ${bytes}, ${at}, ${"12345678901234567890.50"}, ${"it's $1 :x ?"}, ${[bytes, null]},
  ${[1.5, NaN, -Infinity]}) RETURNING *`;
assert.deepEqual(row, {
  id: 2n ** 63n - 1n, a: [1, null, 3],
  j: { list: [1, null, { at: at.toJSON(), big: 2n ** 80n, text: "\u2028 \"'\\ \u{1F600}" }] },
  d: NaN, b: bytes, at, n: "12345678901234567890.50", t: "it's $1 :x ?", bs: [bytes, null],
  ds: [1.5, NaN, -Infinity],
});

// What is exact is a number; `bigint` goes by the type of the column alone.
const exact = sql`SELECT 9007199254740991 AS most, 9007199254740992 AS more, -9007199254740993 AS less,
  ARRAY[1, 9007199254740993]::bigint[] AS list, 1e22::float8 AS double, 123456789012345678901::float8 AS d2,
  count(*) AS n, '{"x": 9007199254740993, "y": "12345678901234567890", "z": 0.12345678901234567}'::jsonb AS j FROM v`;
assert.deepEqual((await exact)[0], {
  most: 2 ** 53 - 1, more: 2n ** 53n, less: -(2n ** 53n) - 1n, list: [1, 2n ** 53n + 1n], double: 1e22,
  d2: 123456789012345680000, n: 1,
  j: { x: 9007199254740993n, y: "12345678901234567890", z: 0.12345678901234567 },
});
const [{ n, list }] = await exact.with({ bigint: true });
assert.deepEqual([n, list], [1n, [1n, 9007199254740993n]]);

// As JSON has them.
const plain = await sql`SELECT b, at, d FROM v`.with({ values: "json" });
assert.deepEqual(plain[0], { b: Buffer.from(bytes).toString("base64"), at: "2026-01-02T03:04:05.678000Z", d: "NaN" });

// Lists of values, names, parts, texts.
assert.deepEqual(await sql`SELECT 1 AS one WHERE 2 = ANY(${[1, 2]})`, [{ one: 1 }]);
assert.deepEqual(await sql`SELECT 1 AS one WHERE 3 IN (${sql.join([1, 2])})`, []);
assert.deepEqual(await sql`SELECT 2 AS two WHERE 2 IN (${sql.join([1, 2])})`, [{ two: 2 }]);
assert.deepEqual(await sql`SELECT ${sql.join([])} 1 AS one`, [{ one: 1 }]);
const name = 'we"ird; DROP TABLE v --';
await sql`CREATE TABLE ${sql.id("public", name)} (${sql.id(name)} TEXT)`;
await sql`INSERT INTO ${sql.id(name)} VALUES (${"x"})`;
assert.deepEqual(await sql`SELECT * FROM ${sql.id(name)}`, [{ [name]: "x" }]);
const where = (d) => d === null ? sql`TRUE` : sql`d = ${d} AND n > ${1}`;
assert.deepEqual(await sql`SELECT ${"a"} AS a FROM v WHERE ${where(NaN)} AND t = ${"it's $1 :x ?"}`, [{ a: "a" }]);
assert.deepEqual(await sql`SELECT 1 AS one FROM v WHERE ${where(null)}`, [{ one: 1 }]);
assert.deepEqual(await sql.unsafe("SELECT $1::int + $2 AS s", [1, 2]), [{ s: 3 }]);
assert.deepEqual(await sql.unsafe("SELECT :a::int AS s", { a: 7 }), [{ s: 7 }]);
for (const value of ["text", [1, 2], null, { a: 1 }, 'a"b']) {
  assert.deepEqual((await sql`UPDATE v SET j = ${sql.json(value)} RETURNING j`)[0].j, value);
}

// Rows as lists, empty results, names that are twice or dangerous, no rows at all.
const lists = await sql`SELECT 1 AS a, 2 AS a`.with({ arrays: true });
assert.deepEqual([lists, lists.columns, lists.types], [[[1, 2]], ["a", "a_2"], ["integer", "integer"]]);
const empty = await sql`SELECT id, t FROM v WHERE FALSE`;
assert.deepEqual([empty, empty.columns, empty.affectedRows], [[], ["id", "t"], 0]);
assert.equal((await sql`UPDATE v SET t = NULL`).affectedRows, 1);
const [odd] = await sql`SELECT 1 AS "__proto__", 2 AS constructor`;
assert.deepEqual(Object.entries(odd), [["__proto__", 1], ["constructor", 2]]);
assert.equal(JSON.stringify(await sql`SELECT NULL AS none`), '[{"none":null}]');

// What is no value is said before anything is sent.
const circle = {};
circle.self = circle;
const bad = [undefined, [undefined], () => 1, new Date(NaN), Promise.resolve(1), new Map(), circle, Symbol("s"),
  { part: sql`SELECT 1` }, "\0", [sql`x`]];
for (const value of bad) assert.ok(await failed(sql`SELECT ${value}`) instanceof TypeError, String(typeof value));
assert.ok(await failed((async () => sql("SELECT 1"))()) instanceof TypeError);
assert.ok(await failed(sql`SELECT ${sql.unsafe("$1", [1])}`) instanceof TypeError);

// A query is sent once, however often it is awaited, and not at all if it is not.
const once = sql`INSERT INTO v (id) VALUES (5) RETURNING id`;
assert.deepEqual(await Promise.all([once, once, once.finally(() => 0), once.catch(() => 0)]), Array(4).fill([{ id: 5 }]));
sql`INSERT INTO v (id) VALUES (6)`;
assert.deepEqual(await sql`SELECT id FROM v WHERE id < 10`, [{ id: 5 }]);

assert.throws(() => connect("no URL"), TypeError);
for (const broken of [connect(url, { key: `${key}\n` }), connect(url.replace("//", `//${key}@`))]) {
  const told = await failed(broken`SELECT 1`);
  assert.ok(!`${told.message}${told.stack}${JSON.stringify(told)}`.includes(key));
}
assert.ok(!inspect([sql, sql`SELECT 1`], { depth: 9, showHidden: true }).includes(key));
done();
