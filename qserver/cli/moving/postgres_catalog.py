"""The definitions of a PostgreSQL, from its catalogs, as statements that make the same here.

PostgreSQL prints most of them itself (`pg_get_constraintdef` and the like). What this release has
no word for is listed, and a column of a type that is not known here becomes text: rows come as
texts anyway.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any, Final, NamedTuple

from qserver.cli.moving.move import Definition, Move, MovedTable
from qserver.cli.moving.sqlite_text import text_literal
from qserver.cli.transfer.batches import TextRow
from qserver.values.identifiers import PUBLIC, quote_identifier, quoted

Ask = Callable[[str], list[Any]]
Rows = Callable[[str, tuple[str, ...], str], Iterator[TextRow]]

_OURS: Final = (
    "n.nspname !~ '^pg_' AND n.nspname <> 'information_schema' AND NOT EXISTS (SELECT FROM"
    " pg_catalog.pg_depend AS e WHERE e.objid = {}.oid AND e.deptype = 'e')"
)
"""Not of PostgreSQL itself, nor of an extension."""
_KNOWN: Final = frozenset(
    {
        *("bool", "int2", "int4", "int8", "numeric", "float4", "float8", "text", "varchar"),
        *("bpchar", "date", "time", "timetz", "timestamp", "timestamptz", "interval", "uuid"),
        *("bytea", "json", "jsonb", "jsonpath", "name"),
    }
)
_RELATIONS: Final = (
    "SELECT c.oid, n.nspname, c.relname, c.relkind::text, greatest(c.reltuples, 0)::bigint"
    " FROM pg_catalog.pg_class AS c JOIN pg_catalog.pg_namespace AS n ON n.oid = c.relnamespace"
    f" WHERE c.relkind IN ('r', 'p', 'v', 'm', 'f') AND NOT c.relispartition AND {_OURS}"
    " ORDER BY c.oid"
).format("c")
_COLUMNS: Final = (
    "SELECT a.attrelid, a.attname, pg_catalog.format_type(a.atttypid, a.atttypmod),"
    " CASE WHEN t.typtype = 'd' THEN pg_catalog.format_type(t.typbasetype, t.typtypmod) END,"
    " coalesce(b.typname, e.typname, t.typname), coalesce(b.typtype, e.typtype, t.typtype)::text,"
    " a.attnotnull, a.attidentity::text, a.attgenerated::text,"
    " pg_catalog.pg_get_expr(d.adbin, d.adrelid)"
    " FROM pg_catalog.pg_attribute AS a JOIN pg_catalog.pg_type AS t ON t.oid = a.atttypid"
    " LEFT JOIN pg_catalog.pg_type AS e ON e.oid = t.typelem AND t.typcategory = 'A'"
    " LEFT JOIN pg_catalog.pg_type AS b ON b.oid = t.typbasetype AND t.typtype = 'd'"
    " LEFT JOIN pg_catalog.pg_attrdef AS d ON d.adrelid = a.attrelid AND d.adnum = a.attnum"
    " WHERE a.attnum > 0 AND NOT a.attisdropped ORDER BY a.attrelid, a.attnum"
)
_SEQUENCES: Final = (
    "SELECT n.nspname, c.relname, pg_catalog.format_type(s.seqtypid, NULL), s.seqstart,"
    " s.seqincrement, s.seqmin, s.seqmax, s.seqcache, s.seqcycle, d.deptype::text, d.refobjid,"
    " a.attname FROM pg_catalog.pg_sequence AS s"
    " JOIN pg_catalog.pg_class AS c ON c.oid = s.seqrelid"
    " JOIN pg_catalog.pg_namespace AS n ON n.oid = c.relnamespace"
    " LEFT JOIN pg_catalog.pg_depend AS d ON d.objid = c.oid AND d.deptype IN ('a', 'i')"
    " AND d.refclassid = 'pg_catalog.pg_class'::regclass"
    " LEFT JOIN pg_catalog.pg_attribute AS a"
    " ON a.attrelid = d.refobjid AND a.attnum = d.refobjsubid"
    f" WHERE {_OURS} ORDER BY c.oid"
).format("c")
_CONSTRAINTS: Final = (
    "SELECT conrelid, conname, contype::text, pg_catalog.pg_get_constraintdef(oid)"
    " FROM pg_catalog.pg_constraint WHERE conrelid <> 0 AND contype IN ('p', 'u', 'c', 'f', 'x')"
    " AND conparentid = 0 ORDER BY conrelid, conname"
)
_INDEXES: Final = (
    "SELECT i.indrelid, c.relname, pg_catalog.pg_get_indexdef(i.indexrelid)"
    " FROM pg_catalog.pg_index AS i JOIN pg_catalog.pg_class AS c ON c.oid = i.indexrelid"
    " WHERE NOT EXISTS (SELECT FROM pg_catalog.pg_constraint AS k WHERE k.conindid = i.indexrelid"
    " AND k.contype IN ('p', 'u', 'x')) ORDER BY c.relname"
)
_TYPES: Final = (
    "SELECT n.nspname, t.typname, t.typtype::text, (SELECT array_agg(e.enumlabel ORDER BY"
    " e.enumsortorder) FROM pg_catalog.pg_enum AS e WHERE e.enumtypid = t.oid)"
    " FROM pg_catalog.pg_type AS t JOIN pg_catalog.pg_namespace AS n ON n.oid = t.typnamespace"
    " LEFT JOIN pg_catalog.pg_class AS c ON c.oid = t.typrelid"
    f" WHERE (t.typtype IN ('e', 'd', 'r') OR c.relkind = 'c') AND {_OURS} ORDER BY t.oid"
).format("t")
_COMMENTS: Final = (
    "SELECT d.objoid, d.description, a.attname FROM pg_catalog.pg_description AS d"
    " LEFT JOIN pg_catalog.pg_attribute AS a ON a.attrelid = d.objoid AND a.attnum = d.objsubid"
    " AND d.objsubid > 0 WHERE d.classoid = 'pg_catalog.pg_class'::regclass ORDER BY 1, d.objsubid"
)
_OTHERS: Final = (
    "SELECT 'function', n.nspname || '.' || p.proname FROM pg_catalog.pg_proc AS p"
    " JOIN pg_catalog.pg_namespace AS n ON n.oid = p.pronamespace WHERE "
    + _OURS.format("p")
    + " UNION ALL SELECT 'trigger', tgname::text || ' of ' || tgrelid::regclass"
    " FROM pg_catalog.pg_trigger WHERE NOT tgisinternal"
    " UNION ALL SELECT 'policy', polname::text || ' of ' || polrelid::regclass"
    " FROM pg_catalog.pg_policy UNION ALL SELECT 'extension', extname::text"
    " FROM pg_catalog.pg_extension WHERE extname <> 'plpgsql' ORDER BY 1, 2"
)
_KINDS: Final = {"m": "materialized view", "f": "foreign table"}
_OF_TYPES: Final = {"d": "domain", "r": "range type", "c": "composite type"}


class Relation(NamedTuple):
    oid: int
    schema: str
    name: str
    kind: str
    row_count: int

    @property
    def sql_name(self) -> str:
        return f"{quote_identifier(self.schema)}.{quote_identifier(self.name)}"


class CatalogReader:
    """Fills a Move."""

    def __init__(self, ask: Ask, rows: Rows, move: Move) -> None:
        self._ask = ask
        self._rows = rows
        self._move = move
        self._identities: dict[tuple[int, str], str] = {}

    def read(self) -> None:
        relations = [Relation(*row) for row in self._ask(_RELATIONS)]
        tables = {each.oid: each for each in relations if each.kind in "rp"}
        schemas = sorted({each.schema for each in relations})
        for schema in schemas:
            if schema != PUBLIC:
                self._move.before.append(f"CREATE SCHEMA {quote_identifier(schema)}")
        self._types(schemas)
        owned, values = self._sequences(tables)
        columns: dict[int, list[Any]] = {}
        for oid, *column in self._ask(_COLUMNS):
            columns.setdefault(oid, []).append(column)
        constraints = self._ask(_CONSTRAINTS)
        keys = {
            row[0]: f"CONSTRAINT {quoted(row[1])} {row[3]}" for row in constraints if row[2] == "p"
        }
        for table in tables.values():
            self._table(table, columns.get(table.oid, []), keys.get(table.oid))
        self._move.after += [*owned, *values]
        self._constraints(tables, constraints, "uc")
        for oid, name, text in self._ask(_INDEXES):
            if oid in tables:
                self._after(f"index {name}", text)
        self._constraints(tables, constraints, "f")
        self._views(relations, columns)
        self._comments({each.oid: each for each in relations})
        for kind, name in self._ask(_OTHERS):
            self._move.left_out.append(f"{kind} {name}")

    def _after(self, what: str, statement: str) -> None:
        self._move.after.append(Definition(what, statement))

    def _types(self, schemas: list[str]) -> None:
        for schema, name, kind, labels in self._ask(_TYPES):
            if kind != "e":
                self._move.left_out.append(f"{_OF_TYPES[kind]} {schema}.{name}")
                continue
            if schema not in (PUBLIC, *schemas):
                self._move.before.append(f"CREATE SCHEMA {quote_identifier(schema)}")
                schemas.append(schema)
            values = ", ".join(map(text_literal, labels or ()))
            place = f"{quote_identifier(schema)}.{quote_identifier(name)}"
            self._move.before.append(f"CREATE TYPE {place} AS ENUM ({values})")

    # --- sequences --------------------------------------------------------------------------------

    def _sequences(self, tables: dict[int, Relation]) -> tuple[list[Definition], list[Definition]]:
        """Make sequences, or note the options of identities; return owners and values for later."""
        owned, values = [], []
        for row in self._ask(_SEQUENCES):
            schema, name, kind, *options, dependence, oid, column = row
            place = f"{quote_identifier(schema)}.{quote_identifier(name)}"
            start, increment, least, most, cache, cycle = options
            counting = (
                f"START WITH {start} INCREMENT BY {increment} MINVALUE {least} MAXVALUE {most}"
                f" CACHE {cache}{' CYCLE' if cycle else ''}"
            )
            if dependence == "i":
                if oid not in tables:
                    continue
                self._identities[oid, column] = f"(SEQUENCE NAME {place} {counting})"
            else:
                self._move.before.append(f"CREATE SEQUENCE {place} AS {kind} {counting}")
                if oid in tables:
                    owner = f"{tables[oid].sql_name}.{quote_identifier(column)}"
                    owned.append(
                        Definition(f"owner of {name}", f"ALTER SEQUENCE {place} OWNED BY {owner}")
                    )
            ((last, is_called),) = self._ask(f"SELECT last_value, is_called FROM {place}")
            called = "true" if is_called else "false"
            set_value = f"SELECT setval({text_literal(place)}, {last}, {called})"
            values.append(Definition(f"value of {name}", set_value))
        return owned, values

    # --- tables -----------------------------------------------------------------------------------

    def _table(self, table: Relation, columns: list[Any], key: str | None) -> None:
        lines, stored = [], []
        for name, shown, base, typname, kind, not_null, identity, generated, default in columns:
            line = f"{quote_identifier(name)} {self._type(table, name, shown, base, typname, kind)}"
            if generated:
                line += f" GENERATED ALWAYS AS ({default}) STORED"
            else:
                stored.append(name)
            if identity:
                when = "ALWAYS" if identity == "a" else "BY DEFAULT"
                line += f" GENERATED {when} AS IDENTITY {self._identities[table.oid, name]}"
            elif default is not None and not generated:
                self._after(
                    f"DEFAULT of {table.schema}.{table.name}.{name}",
                    f"ALTER TABLE {table.sql_name} ALTER COLUMN {quote_identifier(name)}"
                    f" SET DEFAULT {default}",
                )
            lines.append(f"{line} NOT NULL" if not_null else line)
        if key is not None:
            lines.append(key)
        body = ",\n  ".join(lines)
        self._move.before.append(f"CREATE TABLE {table.sql_name} (\n  {body}\n)")
        names = tuple(stored)
        listed = ", ".join(map(quote_identifier, names))
        query = f"{table.sql_name} ({listed})"
        if table.kind == "p":
            self._move.remarks.append(f"{table.schema}.{table.name}: its partitions are one table")
            query = f"(SELECT {listed} FROM {table.sql_name})"
        self._move.tables.append(
            MovedTable(
                table.schema,
                table.name,
                names,
                table.row_count,
                lambda: self._rows(query, names, table.name) if names else iter(()),
            )
        )

    def _type(
        self, table: Relation, column: str, shown: str, base: str | None, name: str, kind: str
    ) -> str:
        place = f"{table.schema}.{table.name}.{column}"
        if kind not in "e" and name not in _KNOWN:
            self._move.remarks.append(f"{place}: there is no type {shown} here: it is text")
            return "text"
        if base is not None:
            self._move.remarks.append(f"{place}: it has no domain {shown}: it is {base}")
        return base or shown

    def _constraints(self, tables: dict[int, Relation], found: list[Any], kinds: str) -> None:
        for oid, name, kind, text in found:
            if oid not in tables:
                continue
            table = tables[oid]
            what = f"constraint {name} of {table.schema}.{table.name}"
            if kind == "x" and "u" in kinds:
                self._move.left_out.append(f"{what}: EXCLUDE")
            elif kind in kinds:
                self._after(
                    what, f"ALTER TABLE {table.sql_name} ADD CONSTRAINT {quoted(name)} {text}"
                )

    def _views(self, relations: list[Relation], columns: dict[int, list[Any]]) -> None:
        for view in relations:
            if view.kind == "v":
                ((text,),) = self._ask(f"SELECT pg_catalog.pg_get_viewdef({view.oid})")
                names = ", ".join(quote_identifier(row[0]) for row in columns[view.oid])
                self._after(
                    f"view {view.schema}.{view.name}",
                    f"CREATE VIEW {view.sql_name} ({names}) AS {text.strip().rstrip(';')}",
                )
            elif view.kind in _KINDS:
                self._move.left_out.append(f"{_KINDS[view.kind]} {view.schema}.{view.name}")

    def _comments(self, relations: dict[int, Relation]) -> None:
        for oid, text, column in self._ask(_COMMENTS):
            relation = relations.get(oid)
            if relation is None or relation.kind not in "rpv":
                continue
            kind = "VIEW" if relation.kind == "v" else "TABLE"
            place = f"{kind} {relation.sql_name}"
            if column is not None:
                place = f"COLUMN {relation.sql_name}.{quote_identifier(column)}"
            self._after(f"comment on {place}", f"COMMENT ON {place} IS {text_literal(text)}")
