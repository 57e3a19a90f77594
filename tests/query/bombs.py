"""Statements that one client could send to stop all others, and a heart that beats beside them.

A bomb may finish or be refused, but by one of four errors only, and whoever else wants to run on
the same loop must not wait long for it. What is measured is the processor time of the thread
between two beats, which another process cannot stretch, in steps of known work that are measured
before and after.
"""

from __future__ import annotations

import resource
import sys
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from decimal import Decimal
from pathlib import Path
from typing import Any

import trio

from qserver.errors import OutOfMemory, ProgramLimitExceeded, QserverError, QueryCanceled
from qserver.query.sql_database import SqlDatabase
from qserver.sql.parameters import Given
from tests.known_work import Heart
from tests.sql.databases import opened_sql

BEAT_STEPS_MAX = 60
"""Between two beats, in steps of known work: the quarter of a second that `make hostile` allows,
where a step takes `STEP_SECONDS`. The worst are near two thirds of it."""

TRIES_AGAIN = 5
"""How often a bomb is tried again beside which a beat took too long."""

REFUSED_BY = (QueryCanceled, ProgramLimitExceeded, OutOfMemory)


MEMORY_BYTES = 2 * 1024**3
"""The address space of the process in which statements try to take all memory there is."""

GREEDY = (
    "wide rows held",
    "wide row",
    "wide rows sorted",
    "wide rows joined",
    "wide common table",
    "wide groups",
    "wide set",
    "wide recursion",
    "string_agg distinct",
    "array_agg",
    "json_agg",
    "growing texts",
    "insert of long texts",
)


async def explode(
    database: SqlDatabase, sql: str, timeout_ms: float, parameters: Given = None
) -> tuple[str, float]:
    """How a statement ends beside a heart, and the worst beat in steps of known work."""
    heart = Heart()
    async with trio.open_nursery() as nursery:
        await nursery.start(heart.beat)
        try:
            await database.execute(sql, parameters, timeout_ms=timeout_ms)
            end = "finished"
        except REFUSED_BY as error:
            end = error.code
        except QserverError as error:
            end = f"{error.code} {error}"[:200]
        await trio.lowlevel.checkpoint()
        await trio.lowlevel.checkpoint()
        nursery.cancel_scope.cancel()
    return end, heart.worst_steps()


@dataclass(frozen=True)
class Bomb:
    sql: str
    parameters: Callable[[], Given] = lambda: None

    async def explode(self, database: SqlDatabase, timeout_ms: float) -> tuple[str, float]:
        return await explode(database, self.sql, timeout_ms, self.parameters())


async def held_up(
    bombs: Mapping[str, Bomb], beats: Mapping[str, float], timeout_ms: float, tables: Iterable[str]
) -> dict[str, float]:
    """The bombs beside which a beat took too long, also in a fresh database: the least of some.

    A machine may stumble, over work that is not ours, but not each time.
    """
    slow = {name: beat for name, beat in beats.items() if beat >= BEAT_STEPS_MAX}
    for name in slow:
        for _ in range(TRIES_AGAIN):
            if slow[name] < BEAT_STEPS_MAX:
                break
            async with opened_sql() as database:
                for statement in tables:
                    await database.execute(statement)
                _, beat = await bombs[name].explode(database, timeout_ms)
                slow[name] = min(slow[name], beat)
    return {name: beat for name, beat in slow.items() if beat >= BEAT_STEPS_MAX}


TABLES = (
    "CREATE TABLE few (id INTEGER PRIMARY KEY, a TEXT, n NUMERIC)",
    "INSERT INTO few SELECT i, 'row ' || i, i FROM generate_series(1, 300) AS s(i)",
    "CREATE TABLE many (id INTEGER PRIMARY KEY, a TEXT, b INTEGER, d DATE)",
    "INSERT INTO many SELECT i, 'row ' || i, i % 1000, DATE '2020-01-01' + i % 2000"
    " FROM generate_series(1, 100000) AS s(i)",
    "CREATE TABLE long (id INTEGER PRIMARY KEY, t TEXT, u TEXT)",
    "INSERT INTO long SELECT i, repeat('x', 3000000) || i, repeat('x', 3000000)"
    " FROM generate_series(1, 4) AS s(i)",
)

_BIG = "repeat('x', 15000000)"
_NINES = "repeat('9', 130000)::numeric"
_LIST = "(SELECT array_agg(i) FROM generate_series(1, 100000) AS s(i))"
_LONG = "FROM long, generate_series(1, 20000) AS s(i)"
_SERIES = "FROM generate_series(1, 300000) AS s(i)"

EXPRESSIONS = {
    # Texts that are long, or become so.
    "repeat": "length(repeat('x', 60000000))",
    "repeat within the limit": f"length({_BIG})",
    "concatenation": f"length({_BIG} || {_BIG})",
    "concat": f"length(concat({_BIG}, id, {_BIG}))",
    "concat_ws": f"length(concat_ws({_BIG}, id, id, id))",
    "lpad": "length(lpad('x', 60000000, 'ab'))",
    "rpad": "length(rpad('x', 15000000, 'ab'))",
    "replace": "length(replace(repeat('x', 10000), 'x', repeat('y', 10000)))",
    "replace all": f"length(replace({_BIG}, 'x', 'yz'))",
    "translate": f"length(translate({_BIG}, 'x', 'y'))",
    "overlay": f"length(overlay({_BIG} placing {_BIG} from 3))",
    "format": f"length(format('%s%s', {_BIG}, {_BIG}))",
    "format of a width": "length(format('%60000000s', 'x'))",
    "upper": f"length(upper({_BIG}))",
    "upper beyond ASCII": "length(upper(repeat('ä', 7000000)))",
    "lower beyond ASCII": "length(lower(repeat('Σ', 7000000)))",
    "initcap": f"length(initcap({_BIG}))",
    "reverse": f"length(reverse({_BIG}))",
    "split_part": f"length(split_part({_BIG}, 'x', 3))",
    "strpos": f"strpos({_BIG}, repeat('x', 7000000) || 'y')",
    "trim": f"length(trim({_BIG}, 'x'))",
    "quote_literal": "length(quote_literal(repeat('''', 15000000)))",
    "md5": f"md5({_BIG})",
    "sha512": f"sha512({_BIG}::bytea)",
    "encode hex": f"length(encode({_BIG}::bytea, 'hex'))",
    "encode base64": f"length(encode({_BIG}::bytea, 'base64'))",
    "encode escape": r"length(encode(decode(repeat('ff', 4000000), 'hex'), 'escape'))",
    "decode base64": "length(decode(repeat('abcd', 3000000), 'base64'))",
    "decode hex": "length(decode(repeat('abcd', 3000000), 'hex'))",
    "decode escape": f"length(decode({_BIG}, 'escape'))",
    "normalize": "length(normalize(repeat('ä', 7000000), 'NFD'))",
    "convert_to": "length(convert_to(repeat('ä', 7000000), 'latin1'))",
    "unistr": f"length(unistr({_BIG}))",
    "bit_count": f"bit_count({_BIG}::bytea)",
    "to_ascii": f"length(ascii({_BIG})::text)",
    "string_to_array": f"cardinality(string_to_array({_BIG}, NULL))",
    "string_to_array of parts": "cardinality(string_to_array(repeat('ab,', 5000000), ','))",
    "regexp_split_to_array": "cardinality(regexp_split_to_array(repeat('a,', 5000000), ','))",
    "regexp_replace": "length(regexp_replace(repeat('a', 9000000), 'a', 'bb', 'g'))",
    "regexp_matches": "regexp_count(repeat('a', 9000000), 'a')",
    "LIKE of many characters": "repeat('x', 200000) LIKE '%' || repeat('_', 20000) || 'y%'",
    "LIKE of many pieces": "repeat('ab', 200000) LIKE repeat('%a_', 20000) || 'y'",
    "ILIKE": f"{_BIG} ILIKE '%y%z'",
    "SIMILAR": "repeat('x', 200000) SIMILAR TO '(x|y)*z'",
    "regex of many optional parts": "repeat('x', 40) ~ (repeat('x?', 40) || repeat('x', 41))",
    "regex of many repetitions": "a ~ (repeat('(a|b)*.*', 100) || 'c')",
    "regex of each row": "a ~ (repeat('(a|b)*.*', 100) || id)",
    "regex, any": "a ~ ANY(ARRAY(SELECT '(a|b)*' || i FROM generate_series(1, 9000) AS s(i)))",
    "LIKE, any": "a LIKE ANY(ARRAY(SELECT '%' || i || '_x' FROM generate_series(1, 9000) AS s(i)))",
    "to_char of a long pattern": "length(to_char(1234.5, repeat('9', 100000)))",
    "to_char of a date": "length(to_char(now(), repeat('YYYY', 1000000)))",
    "to_date of a long pattern": "to_date(repeat('1', 100000), repeat('YYYY ', 20000))",
    "to_number": "to_number(repeat('1', 100000), repeat('9', 100000))",
    # Numbers of many digits.
    "root of a power": "sqrt(2::numeric ^ 300000)",
    "power": "2::numeric ^ 400000 > 0",
    "exp": "exp(5999.1) > 0",
    "exp of many digits": "exp(('5.' || repeat('3', 16000))::numeric) > 0",
    "ln": f"ln({_NINES})",
    "ln of many digits": "ln(('0.' || repeat('7', 16000))::numeric)",
    "log": f"log({_NINES}, {_NINES})",
    "division": f"{_NINES} / repeat('7', 65000)::numeric > 0",
    "remainder": f"{_NINES} % repeat('7', 65000)::numeric > 0",
    "div": f"div({_NINES}, repeat('7', 65000)::numeric) > 0",
    "gcd": f"gcd({_NINES}, repeat('7', 130000)::numeric) > 0",
    "lcm": "lcm(repeat('7', 60000)::numeric, repeat('3', 60000)::numeric) > 0",
    "factorial": "factorial(32000) > 0",
    "product": "repeat('7', 65000)::numeric * repeat('7', 65000)::numeric > 0",
    "odd power": f"(-1.0) ^ {_NINES}",
    "round": f"round({_NINES}, 2000) > 0",
    "trim_scale": f"trim_scale({_NINES}) > 0",
    "numeric as text": f"length({_NINES}::text)",
    "numeric as double": f"length(({_NINES} * 0)::double precision::text)",
    "text as numeric": "repeat('9', 15000000)::numeric > 0",
    "text as integer": "repeat('0', 15000000)::integer > 0",
    "text as double": "length((repeat('0', 15000000) || '1')::double precision::text)",
    "text as date": f"{_BIG}::date",
    "text as interval": "repeat('1 day ', 1000000)::interval > '1 day'",
    "text as uuid": f"{_BIG}::uuid",
    "text as bytea": "length(repeat('\\000', 3000000)::bytea)",
    "text as boolean": f"{_BIG}::boolean",
    "text as array of intervals": "cardinality(('{' || repeat('1 day,', 40000)"
    " || '1 day}')::interval[])",
    "texts as moments": "cardinality(array_fill('2024-02-29 12:34+02'::text, ARRAY[30000])"
    "::timestamptz[])",
    "text that is no array": "(repeat('1,', 30000))::numeric[]",
    "trim of blanks": "length(rtrim(repeat(' ', 15000000)))",
    "width_bucket": f"width_bucket(5, {_LIST})",
    # JSON.
    "json": "length(('[' || repeat('1,', 7000000) || '1]')::json::text)",
    "jsonb": "length(('[' || repeat('1,', 7000000) || '1]')::jsonb::text)",
    "jsonb of strings": "length(('[' || repeat('\"a\",', 3000000) || '1]')::jsonb::text)",
    "json that is wrong": "(repeat('[1,', 200) || repeat('1,', 5000000))::json",
    "json with bad escapes": "('\"' || repeat('\\\\', 1000000) || '\\x\"')::json",
    "json, deep": "(repeat('[', 300) || repeat(']', 300))::jsonb",
    "jsonb_set": "length(jsonb_set(('[' || repeat('1,', 100000) || '1]')::jsonb,"
    " '{1}', '2')::text)",
    "jsonb @>": "('[' || repeat('{\"a\":1},', 5000) || '1]')::jsonb"
    " @> ('[' || repeat('{\"b\":1},', 5000) || '1]')::jsonb",
    "jsonb ->": "('[' || repeat('1,', 900000) || '1]')::json -> 5",
    "jsonb equality": "('[' || repeat('1,', 300000) || '1]')::jsonb"
    " < ('[' || repeat('1,', 300000) || '2]')::jsonb",
    "jsonb_pretty": "length(jsonb_pretty(('[' || repeat('[1],', 90000) || '1]')::jsonb))",
    "to_json": f"length(to_json({_BIG})::text)",
    "to_jsonb of an array": f"length(to_jsonb({_LIST})::text)",
    "json_build_array": f"length(json_build_array({_BIG}, {_BIG})::text)",
    "json_object": f"length(json_object({_LIST}::text[])::text)",
    # Arrays.
    "array_fill": "cardinality(array_fill(1, ARRAY[16000000]))",
    "array_fill of many parts": "cardinality(array_fill(1, ARRAY[1000000, 1]))",
    "array_fill of two dimensions": "cardinality(array_fill(1, ARRAY[4000, 4000]))",
    "array ||": f"cardinality({_LIST} || {_LIST} || {_LIST})",
    "array_append": f"cardinality(array_append({_LIST}, 1))",
    "array_position": f"array_position({_LIST}, -1)",
    "array_remove": f"cardinality(array_remove({_LIST}, -1))",
    "array_replace": f"cardinality(array_replace({_LIST}, -1, 0))",
    "array @>": f"{_LIST} @> {_LIST}",
    "array &&": f"{_LIST} && ARRAY[-1]",
    "array =": f"{_LIST} = {_LIST}",
    "array <": f"{_LIST} < {_LIST}",
    "array_to_string": f"length(array_to_string({_LIST}, ','))",
    "array_to_string of a long separator": "length(array_to_string(array_fill(1, ARRAY[1000]),"
    " repeat('x', 1000000)))",
    "array of empty texts": "cardinality(array_append(array_fill(''::text, ARRAY[900000]), 'a'))",
    "array as text": f"length({_LIST}::text)",
    "array of other elements": f"cardinality({_LIST}::text[])",
    "text as array": "cardinality(('{' || repeat('1,', 5000000) || '1}')::integer[])",
    "text as array of quoted": "cardinality(('{' || repeat('\"1\",', 900000) || '1}')::integer[])",
    "any of an array": f"id = ANY({_LIST}::integer[])",
    "all of an array": f"id <> ALL({_LIST}::integer[])",
    "row in": f"(id, id) IN (SELECT i, -i {_SERIES})",
    "greater than all": f"id > ALL(SELECT -i {_SERIES})",
    "in a query": f"id IN (SELECT -i {_SERIES})",
}

STATEMENTS = {
    "ranks by texts of dates": "SELECT max(r) FROM (SELECT rank() OVER (ORDER BY"
    f" to_char(to_date((20000101 + i % 28)::text, 'YYYYMMDD'), 'Day DDD YYYY')) r {_SERIES}) q",
    "first_value": f"SELECT sum(v) FROM (SELECT first_value(i) OVER (ORDER BY i) v {_SERIES}) q",
    "sums of frames": "SELECT sum(v) FROM (SELECT sum(i) OVER (ORDER BY i"
    f" ROWS BETWEEN 20000 PRECEDING AND CURRENT ROW) v {_SERIES}) q",
    "sums of all but one": "SELECT sum(v) FROM (SELECT sum(i) OVER (ORDER BY i ROWS BETWEEN"
    f" UNBOUNDED PRECEDING AND UNBOUNDED FOLLOWING EXCLUDE CURRENT ROW) v {_SERIES}) q",
    "growing texts": "SELECT sum(length(v)) FROM (SELECT string_agg(i::text, ',')"
    f" OVER (ORDER BY i) v {_SERIES}) q",
    "sums of one frame": "SELECT sum(v) FROM (SELECT sum(i) OVER (ORDER BY i % 1"
    f" RANGE BETWEEN 1 PRECEDING AND 1 FOLLOWING) v {_SERIES}) q",
    "many windows": f"SELECT lag(i) OVER w, lead(i) OVER w, ntile(7) OVER w, percent_rank() OVER w"
    f" {_SERIES} WINDOW w AS (PARTITION BY i % 7 ORDER BY -i) OFFSET 299999",
    "sort": f"SELECT i {_SERIES} ORDER BY i % 1000, -i OFFSET 299999",
    "sort by long keys": f"SELECT i FROM (SELECT i {_SERIES} LIMIT 5000) q"
    " ORDER BY repeat('x', 20000) || i OFFSET 4999",
    "sort by deep json": "SELECT i FROM generate_series(1, 3000) AS s(i)"
    " ORDER BY (repeat('[', 100) || i || repeat(']', 100))::jsonb OFFSET 2999",
    "list in the order of json": "SELECT cardinality(array_agg(i ORDER BY"
    " ('[' || repeat('1, ', 300) || i || ']')::jsonb)) FROM generate_series(1, 6000) AS s(i)",
    "deviation in order": "SELECT stddev(x ORDER BY x) > 0 FROM"
    " (SELECT (repeat('9', 20000) || id)::numeric AS x FROM few) q",
    "deviation, distinct": "SELECT stddev(DISTINCT x) > 0 FROM"
    " (SELECT (repeat('9', 20000) || id)::numeric AS x FROM few) q",
    "sort by costly keys": f"SELECT i {_SERIES} ORDER BY to_char(i, '999G999G999D99')"
    " OFFSET 299999",
    "sort, mixed": f"SELECT i {_SERIES} ORDER BY i % 10 DESC, i % 100, i DESC OFFSET 299999",
    "top": f"SELECT i {_SERIES} ORDER BY to_char(i, '999G999G999D99') LIMIT 100000",
    "top of all": f"SELECT i {_SERIES} ORDER BY i % 1000 LIMIT 1000000000 OFFSET 299999",
    "top of wide rows": "SELECT length(x) FROM (SELECT repeat(a, 1000000) x FROM few) q"
    " ORDER BY x LIMIT 1000",
    "distinct": f"SELECT count(*) FROM (SELECT DISTINCT i, repeat('x', 1000) {_SERIES}) q",
    "distinct on": f"SELECT DISTINCT ON (i % 7) i {_SERIES} ORDER BY i % 7, i DESC",
    "wide rows held": "SELECT repeat('x', 15000000) FROM few",
    "wide row": f"SELECT {', '.join(['repeat(a, 2000000)'] * 200)} FROM few WHERE id = 1",
    "wide rows sorted": "SELECT length(x) FROM (SELECT repeat(a, 1000000) x, id FROM few"
    " ORDER BY 1 OFFSET 1) q",
    "wide rows joined": "SELECT count(*) FROM few JOIN (SELECT repeat(a, 1000000) x, id FROM few) q"
    " ON few.id = q.id AND length(x) > few.id",
    "wide common table": "WITH q AS MATERIALIZED (SELECT repeat(a, 1000000) x FROM few)"
    " SELECT sum(length(x)) FROM q",
    "wide groups": "SELECT count(*) FROM few GROUP BY repeat(a, 1000000)",
    "wide set": "SELECT repeat(a, 1000000) FROM few UNION SELECT repeat(a, 1000001) FROM few",
    "wide recursion": "WITH RECURSIVE r(x, n) AS (SELECT 'x', 1 UNION ALL SELECT x || x, n + 1"
    " FROM r WHERE n < 40) SELECT max(length(x)) FROM r",
    "string_agg": "SELECT length(string_agg(repeat(a, 10000), ',')) FROM few",
    "string_agg distinct": "SELECT length(string_agg(DISTINCT repeat(a, 100000), ',')) FROM few",
    "string_agg in order": "SELECT length(string_agg(repeat(a, 100000), ',' ORDER BY repeat(a, 9)))"
    " FROM few",
    "array_agg": "SELECT cardinality(array_agg(repeat(a, 1000000))) FROM few",
    "array_agg of arrays": f"SELECT cardinality(array_agg({_LIST})) FROM few",
    "json_agg": "SELECT length(json_agg(repeat(a, 1000000))::text) FROM few",
    "jsonb_agg": f"SELECT length(jsonb_agg(i)::text) {_SERIES}",
    "jsonb_object_agg": f"SELECT length(jsonb_object_agg(i, i)::text) {_SERIES}",
    "array_agg in order": f"SELECT cardinality(array_agg(i ORDER BY i % 100, -i)) {_SERIES}",
    "mode": f"SELECT mode() WITHIN GROUP (ORDER BY i) {_SERIES}",
    "percentile": f"SELECT percentile_cont(0.3) WITHIN GROUP (ORDER BY i::float) {_SERIES}",
    "percentiles": "SELECT "
    + ", ".join(f"percentile_cont(0.{n:02}) WITHIN GROUP (ORDER BY b)" for n in range(50))
    + " FROM many",
    "sum of long numbers": f"SELECT length(sum({_NINES})::text) FROM few",
    "variance of long numbers": f"SELECT length(var_pop({_NINES})::text) FROM few",
    "long texts, max": f"SELECT length(max(t)) {_LONG}",
    "long texts, distinct from": f"SELECT count(*) {_LONG}, long o"
    " WHERE long.t IS DISTINCT FROM o.t OR i < 0",
    "long texts, groups": f"SELECT count(*) {_LONG} GROUP BY u",
    "long texts, distinct": f"SELECT count(DISTINCT u) {_LONG}",
    "long texts, distinct rows": f"SELECT count(*) FROM (SELECT DISTINCT u {_LONG}) q",
    "long texts, union": f"SELECT u {_LONG} UNION SELECT u {_LONG}",
    "long texts, intersect": f"SELECT u {_LONG} INTERSECT SELECT u {_LONG}",
    "long texts, join": f"SELECT count(*) FROM (SELECT u, i {_LONG}) a JOIN (SELECT u, i {_LONG}) b"
    " ON a.u = b.u AND a.i = b.i",
    "long texts, in": f"SELECT count(*) {_LONG} WHERE CASE WHEN i > 0 THEN u IN (SELECT o.u"
    " FROM long o WHERE o.id = 1) END",
    "long texts, partitions": "SELECT count(r) FROM (SELECT count(*) OVER (PARTITION BY u) r"
    f" {_LONG}) q",
    "long texts, ranks": f"SELECT count(r) FROM (SELECT rank() OVER (ORDER BY u) r {_LONG}) q",
    "long texts, top": f"SELECT i {_LONG} ORDER BY t, i LIMIT 10",
    "peers": "SELECT count(v) FROM (SELECT sum(i) OVER (ORDER BY i) v"
    " FROM generate_series(1, 600000) AS s(i)) q",
    "many groups": f"SELECT i, count(*) {_SERIES} GROUP BY i ORDER BY 1 OFFSET 299999",
    "many grouping sets": f"SELECT count(*) FROM (SELECT 1 {_SERIES}"
    " GROUP BY CUBE (i % 1000, i % 1001, i % 1002)) q",
    "intersect": f"SELECT i {_SERIES} INTERSECT SELECT i {_SERIES} OFFSET 299999",
    "except": f"SELECT i {_SERIES} EXCEPT SELECT -i {_SERIES} OFFSET 299999",
    "except all": f"SELECT i {_SERIES} EXCEPT ALL SELECT -i {_SERIES} OFFSET 299999",
    "full join": f"SELECT count(*) FROM (SELECT i {_SERIES}) a FULL JOIN"
    f" (SELECT i + 5 AS j {_SERIES}) b ON i = j",
    "left join with a condition": f"SELECT count(*) FROM few LEFT JOIN (SELECT i {_SERIES}) b"
    " ON i % 2 = 5 AND length(a) > i",
    "hash join of one key": f"SELECT count(*) FROM few JOIN (SELECT i {_SERIES}) b"
    " ON few.id % 1 = b.i % 1",
    "anti-join": f"SELECT count(*) FROM few WHERE NOT EXISTS (SELECT 1 FROM (SELECT i {_SERIES}) b"
    " WHERE i % 1 = few.id % 1 AND to_char(i, '9999') = few.a)",
    "not in of two columns": "SELECT count(*) FROM few WHERE (id, id) NOT IN"
    f" (SELECT i, -i {_SERIES})",
    "unnest": f"SELECT count(*) FROM unnest({_LIST}) u, few",
    "elements of json": "SELECT count(*) FROM json_array_elements(('[' || repeat('1,', 3000000)"
    " || '1]')::json)",
    "rows of a text": "SELECT count(*) FROM string_to_table(repeat('a,', 5000000), ',')",
    "rows of matches": "SELECT count(*) FROM regexp_matches(repeat('a', 3000000), 'a', 'g')",
    "recursion": "WITH RECURSIVE r(n) AS (SELECT 1 UNION SELECT n + s FROM r, generate_series(1, 9)"
    " AS g(s) WHERE n < 300000) SELECT count(*) FROM r",
    "insert of a query": "INSERT INTO many SELECT i + 1000000, repeat('x', 100), i, NULL"
    f" {_SERIES}",
    "insert of long texts": "INSERT INTO few SELECT id + 1000, repeat(a, 1000000), 0 FROM few",
    "insert on conflict": "INSERT INTO many SELECT i, 'x', i, NULL FROM generate_series(1, 100000)"
    " AS s(i) ON CONFLICT (id) DO UPDATE SET b = many.b + 1",
    "update of all": "UPDATE many SET b = b + 1",
    "update to a long text": f"UPDATE many SET a = '{'x' * 20_000}'",
    "update that returns all": "UPDATE many SET a = repeat(a, 100) RETURNING *",
    "update of keys": "UPDATE many SET id = -id",
    "delete of all": "DELETE FROM many WHERE id % 2 = 0",
    "merge": "MERGE INTO many USING generate_series(50000, 150000) AS s(i) ON many.id = s.i"
    " WHEN MATCHED THEN UPDATE SET b = 0 WHEN NOT MATCHED THEN INSERT (id) VALUES (i)",
    "create index": "CREATE INDEX ON many (a, b)",
    "create unique index": "CREATE UNIQUE INDEX ON many (a, id)",
    "add a column": "ALTER TABLE many ADD COLUMN c TEXT DEFAULT repeat('x', 100)",
    "add a long column": "ALTER TABLE many ADD COLUMN long TEXT DEFAULT repeat('x', 10000)",
    "change a type": "ALTER TABLE many ALTER COLUMN b TYPE TEXT",
    "add a check": "ALTER TABLE many ADD CHECK (length(a) < 100)",
    "add a foreign key": "ALTER TABLE many ADD FOREIGN KEY (id) REFERENCES many (id)",
    "create table as": f"CREATE TABLE copy AS SELECT i, repeat('x', 100) x {_SERIES}",
    "create a table of many keys": "CREATE TABLE keyed ("
    f"{', '.join(f'c{n} INTEGER UNIQUE' for n in range(500))})",
    "truncate": "TRUNCATE many",
    "drop": "DROP TABLE many",
}


HELD = {
    "percentiles of many orders": "SELECT "
    + ", ".join(f"percentile_cont(0.{n:02}) WITHIN GROUP (ORDER BY b + {n})" for n in range(40))
    + " FROM many",
    "lists of groups": "SELECT count(*) FROM (SELECT i % 200000, array_agg(i)"
    " FROM generate_series(1, 400000) AS s(i) GROUP BY 1) q",
    "rows sorted": "SELECT count(*) FROM (SELECT i % 1000, i::text || 'x' t"
    " FROM generate_series(1, 400000) AS s(i) ORDER BY 1, 2 OFFSET 1) q",
    "rows of a window": "SELECT count(*) FROM (SELECT sum(i) OVER (ORDER BY i % 100000 DESC),"
    " ntile(9) OVER (ORDER BY i) FROM generate_series(1, 300000) AS s(i)) q",
}
"""Statements that hold much memory until they end, or are refused for it."""


def _nested() -> list[Any]:
    return [[[1] * 100 for _ in range(100)] for _ in range(300)]


PARAMETERS: dict[str, tuple[str, Callable[[], list[Any]]]] = {
    "integers": ("SELECT cardinality($1::integer[])", lambda: [[1] * 3_500_000]),
    "integers within the limit": ("SELECT cardinality($1::integer[])", lambda: [[1] * 900_000]),
    "numerics": ("SELECT cardinality($1::numeric[])", lambda: [[Decimal("1.5")] * 1_500_000]),
    "doubles": ("SELECT cardinality($1::float[])", lambda: [[Decimal("1.5")] * 900_000]),
    "empty texts": ("SELECT cardinality($1::text[])", lambda: [[""] * 1_500_000]),
    "texts": ("SELECT cardinality($1::text[])", lambda: [["äöü"] * 700_000]),
    "dates": ("SELECT cardinality($1::date[])", lambda: [["2024-02-29"] * 600_000]),
    "intervals": ("SELECT cardinality($1::interval[])", lambda: [["1 day"] * 600_000]),
    "json values": ("SELECT cardinality($1::jsonb[])", lambda: [[{"a": [1]}] * 300_000]),
    "dimensions": ("SELECT cardinality($1::integer[])", lambda: [_nested()]),
    "not rectangular": ("SELECT cardinality($1::integer[])", lambda: [[*_nested(), [[1]]]]),
    "an array in a text": (
        "SELECT cardinality($1::integer[])",
        lambda: ["{" + "1," * 3_000_000 + "1}"],
    ),
    "any of many": ("SELECT count(*) FROM many WHERE id = ANY($1)", lambda: [list(range(900_000))]),
    "a list that is json": ("SELECT length($1::jsonb::text)", lambda: [[1] * 3_500_000]),
    "a list of unknown type": ("SELECT $1", lambda: [[1] * 3_500_000]),
    "a list that is a number": ("SELECT $1::integer", lambda: [[1] * 3_500_000]),
    "a list that is a text": ("SELECT length($1::text)", lambda: [[1] * 3_500_000]),
    "an object": ("SELECT length($1::jsonb::text)", lambda: [{f"k{n}": n for n in range(500_000)}]),
    "an object of unknown type": ("SELECT $1", lambda: [{f"k{n}": n for n in range(500_000)}]),
    "objects": ("SELECT length($1::json::text)", lambda: [[{}] * 2_500_000]),
    "long numbers in json": ("SELECT length($1::jsonb::text)", lambda: [[10**4000] * 1900]),
    "long numbers": ("SELECT cardinality($1::numeric[])", lambda: [[10**4000] * 1900]),
    "json in a text": ("SELECT length($1::jsonb::text)", lambda: ["[" + "1," * 3_500_000 + "1]"]),
    "escapes": ("SELECT length($1::jsonb::text)", lambda: ['"' + "\\u00e9" * 1_200_000 + '"']),
    "a numeric of many digits": ("SELECT $1::numeric", lambda: ["9" * 7_000_000]),
    "an integer of many digits": ("SELECT $1::integer", lambda: ["9" * 7_000_000]),
    "an interval of many parts": ("SELECT $1::interval", lambda: ["1 day " * 1_000_000]),
    "bytes": ("SELECT length($1::bytea)", lambda: ["abcd" * 1_900_000]),
    "long texts, compared": ("SELECT count(*) FROM long WHERE u > $1", lambda: ["x" * 3_000_000]),
}
"""What a request may bring along: each is a statement and its parameters, of 8 MB as JSON. They are
made when they are wanted: the collector would look at all of them in every test of the process."""


async def _devour(names: Iterable[str]) -> None:
    """Run what wants memory in a process that has little, and say how much it came to."""
    async with opened_sql() as database:
        for statement in TABLES[:2]:
            await database.execute(statement)
        for name in names:
            end, _ = await explode(database, STATEMENTS[name], timeout_ms=10_000)
            print(f"{name}: {end}")
    print(peak_mebibytes())


def peak_mebibytes() -> int:
    """The most memory that this program has had. Not `ru_maxrss`: that survives exec, so it would
    be the peak of the process that started this one."""
    status = Path("/proc/self/status").read_text()
    return int(status.partition("VmHWM:")[2].split()[0]) // 1024


if __name__ == "__main__":
    resource.setrlimit(resource.RLIMIT_AS, (MEMORY_BYTES, MEMORY_BYTES))
    trio.run(_devour, sys.argv[1:])
