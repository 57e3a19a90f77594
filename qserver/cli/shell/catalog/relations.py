"""\\d name: the columns of a relation, and below them what belongs to it."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Final

from qserver.cli.shell.catalog.lists import Asked, cases
from qserver.cli.shell.catalog.patterns import Columns, conditions
from qserver.cli.shell.shell import Shell
from qserver.errors import UndefinedTable

_TITLES: Final = {
    "r": "Table",
    "p": "Partitioned table",
    "v": "View",
    "m": "Materialized view",
    "i": "Index",
    "I": "Partitioned index",
    "S": "Sequence",
    "f": "Foreign table",
    "c": "Composite type",
    "t": "TOAST table",
}
_STORAGE: Final = {"p": "plain", "e": "external", "m": "main", "x": "extended"}
_COMPRESSION: Final = {"p": "pglz", "l": "lz4"}
_HAS_STATISTICS: Final = "riImfp"
_HAS_COMPRESSION: Final = "rpm"
_HAS_COMMENTS: Final = "rvmfcp"

Row = tuple[Any, ...]


def show_relations(shell: Shell, asked: Asked) -> None:
    """Describe every relation that the pattern names."""
    named = Columns("c.relname", "n.nspname", "pg_catalog.pg_table_is_visible(c.oid)")
    where = " AND ".join(conditions(asked.pattern, named, shell)) or "true"
    found = shell.query(
        "SELECT c.oid, n.nspname, c.relname, c.relkind, c.relpersistence, am.amname,"
        " pg_catalog.array_to_string(c.reloptions, ', ') FROM pg_catalog.pg_class c"
        " LEFT JOIN pg_catalog.pg_namespace n ON n.oid = c.relnamespace"
        f" LEFT JOIN pg_catalog.pg_am am ON am.oid = c.relam WHERE {where} ORDER BY 2, 3"
    )
    if not found.rows:
        raise UndefinedTable(
            f'Did not find any relation named "{asked.pattern}".', hint="\\d alone lists them."
        )
    for row in found.rows:
        Described(shell, row, asked.is_verbose).show()


class Described:
    """One relation."""

    def __init__(self, shell: Shell, row: Row, is_verbose: bool) -> None:
        self._shell = shell
        self._oid, self._schema, self._name, self._kind, persistence, self._method, options = row
        self._options: str = options or ""
        self._is_verbose = is_verbose
        title = _TITLES.get(self._kind, f"?{self._kind}?")
        if persistence == "u":
            title = f"Unlogged {title.lower()}"
        self._title = f'{title} "{self._schema}.{self._name}"'

    def show(self) -> None:
        if self._kind == "S":
            self._show_sequence()
            return
        is_index = self._kind in "iI"
        columns, rows = self._index_columns() if is_index else self._columns()
        below = self._index_footers() if is_index else self._footers()
        texts = ("text",) * len(columns)
        self._shell.print_table(columns, texts, rows, self._title, tuple(below), expands=False)

    def _rows(self, sql: str) -> list[Row]:
        return self._shell.query(sql, [self._oid]).rows

    # --- columns ---------------------------------------------------------------------------------

    def _columns(self) -> tuple[tuple[str, ...], list[Row]]:
        found = self._rows(
            "SELECT a.attname, pg_catalog.format_type(a.atttypid, a.atttypmod),"
            " (SELECT l.collname FROM pg_catalog.pg_collation l, pg_catalog.pg_type t"
            " WHERE l.oid = a.attcollation AND t.oid = a.atttypid"
            " AND a.attcollation <> t.typcollation),"
            " CASE WHEN a.attnotnull THEN 'not null' ELSE '' END,"
            " (SELECT pg_catalog.pg_get_expr(d.adbin, d.adrelid, true)"
            " FROM pg_catalog.pg_attrdef d"
            " WHERE d.adrelid = a.attrelid AND d.adnum = a.attnum AND a.atthasdef),"
            f" {cases('a.attstorage', _STORAGE)}, {cases('a.attcompression', _COMPRESSION)},"
            " CASE WHEN a.attstattarget >= 0 THEN a.attstattarget::text END,"
            " pg_catalog.col_description(a.attrelid, a.attnum), a.attidentity, a.attgenerated"
            " FROM pg_catalog.pg_attribute a"
            " WHERE a.attrelid = ? AND a.attnum > 0 AND NOT a.attisdropped ORDER BY a.attnum"
        )
        heads = ["Column", "Type", "Collation", "Nullable", "Default"]
        wanted = [0, 1, 2, 3, 4]
        if self._is_verbose:
            heads, wanted = [*heads, "Storage"], [*wanted, 5]
            for kinds, number, head in (
                (_HAS_COMPRESSION, 6, "Compression"),
                (_HAS_STATISTICS, 7, "Stats target"),
                (_HAS_COMMENTS, 8, "Description"),
            ):
                if self._kind in kinds:
                    heads.append(head)
                    wanted.append(number)
        rows = []
        for each in found:
            row = list(each)
            row[4] = _default(each[4], each[9], each[10])
            rows.append(tuple(row[number] or "" for number in wanted))
        return tuple(heads), rows

    def _index_columns(self) -> tuple[tuple[str, ...], list[Row]]:
        found = self._rows(
            "SELECT a.attname, pg_catalog.format_type(a.atttypid, a.atttypmod),"
            " CASE WHEN a.attnum <= x.indnkeyatts THEN 'yes' ELSE 'no' END,"
            " pg_catalog.pg_get_indexdef(a.attrelid, a.attnum, true),"
            f" {cases('a.attstorage', _STORAGE)},"
            " CASE WHEN a.attstattarget >= 0 THEN a.attstattarget::text ELSE '' END"
            " FROM pg_catalog.pg_attribute a"
            " JOIN pg_catalog.pg_index x ON x.indexrelid = a.attrelid"
            " WHERE a.attrelid = ? AND a.attnum > 0 AND NOT a.attisdropped ORDER BY a.attnum"
        )
        heads = ("Column", "Type", "Key?", "Definition", "Storage", "Stats target")
        count = len(heads) if self._is_verbose else 4
        return heads[:count], [row[:count] for row in found]

    # --- what is below ---------------------------------------------------------------------------

    def _footers(self) -> Iterator[str]:
        if self._kind in "vm" and self._is_verbose:
            (view,) = self._rows("SELECT pg_catalog.pg_get_viewdef(?::oid, true)")
            yield "View definition:"
            yield str(view[0])
        if self._kind in "rpmf":
            yield from self._section("Indexes", self._indexes())
            yield from self._section("Check constraints", self._checks())
            yield from self._section("Foreign-key constraints", self._references())
            yield from self._section("Referenced by", self._referrers())
        if self._is_verbose and self._kind in "rpm" and self._method:
            yield f"Access method: {self._method}"
        if self._is_verbose and self._options:
            yield f"Options: {self._options}"

    @staticmethod
    def _section(title: str, lines: list[str]) -> Iterator[str]:
        if lines:
            yield f"{title}:"
            yield from (f"    {line}" for line in lines)

    def _indexes(self) -> list[str]:
        found = self._rows(
            "SELECT i.relname, x.indisprimary, x.indisunique, x.indisclustered, x.indisvalid,"
            " pg_catalog.pg_get_indexdef(x.indexrelid, 0, true), k.contype, k.condeferrable,"
            " k.condeferred, x.indisreplident, pg_catalog.pg_get_constraintdef(k.oid, true)"
            " FROM pg_catalog.pg_index x JOIN pg_catalog.pg_class i ON i.oid = x.indexrelid"
            " LEFT JOIN pg_catalog.pg_constraint k ON k.conrelid = x.indrelid"
            " AND k.conindid = x.indexrelid AND k.contype IN ('p', 'u', 'x')"
            " WHERE x.indrelid = ? ORDER BY x.indisprimary DESC, i.relname"
        )
        return [_index_line(*row) for row in found]

    def _checks(self) -> list[str]:
        found = self._rows(
            "SELECT k.conname, pg_catalog.pg_get_constraintdef(k.oid, true)"
            " FROM pg_catalog.pg_constraint k WHERE k.conrelid = ? AND k.contype = 'c' ORDER BY 1"
        )
        return [f'"{name}" {definition}' for name, definition in found]

    def _references(self) -> list[str]:
        found = self._rows(
            "SELECT k.conname, pg_catalog.pg_get_constraintdef(k.oid, true)"
            " FROM pg_catalog.pg_constraint k WHERE k.conrelid = ? AND k.contype = 'f' ORDER BY 1"
        )
        return [f'"{name}" {definition}' for name, definition in found]

    def _referrers(self) -> list[str]:
        found = self._rows(
            "SELECT k.conname, k.conrelid::pg_catalog.regclass::text,"
            " pg_catalog.pg_get_constraintdef(k.oid, true)"
            " FROM pg_catalog.pg_constraint k WHERE k.confrelid = ? AND k.contype = 'f' ORDER BY 1"
        )
        return [f'TABLE "{table}" CONSTRAINT "{name}" {text}' for name, table, text in found]

    def _index_footers(self) -> Iterator[str]:
        deferred = (
            "NOT x.indimmediate AND EXISTS (SELECT 1 FROM pg_catalog.pg_constraint k"
            " WHERE k.conrelid = x.indrelid AND k.conindid = x.indexrelid AND k.{})"
        )
        ((unique, primary, together, clustered, valid, may, will, replica, *names),) = self._rows(
            "SELECT x.indisunique, x.indisprimary, x.indnullsnotdistinct, x.indisclustered,"
            f" x.indisvalid, {deferred.format('condeferrable')},"
            f" {deferred.format('condeferred')}, x.indisreplident, t.relname,"
            " pg_catalog.pg_get_expr(x.indpred, x.indrelid, true)"
            " FROM pg_catalog.pg_index x JOIN pg_catalog.pg_class t ON t.oid = x.indrelid"
            " WHERE x.indexrelid = ?"
        )
        table, predicate = names
        kind = "primary key, " if primary else "unique" if unique else ""
        if unique and not primary:
            kind += " nulls not distinct, " if together else ", "
        text = f'{kind}{self._method}, for table "{self._schema}.{table}"'
        text += f", predicate ({predicate})" if predicate else ""
        flags = {
            ", clustered": clustered,
            ", invalid": not valid,
            ", deferrable": may,
            ", initially deferred": will,
            ", replica identity": replica,
        }
        yield text + "".join(word for word, is_set in flags.items() if is_set)

    # --- sequences -------------------------------------------------------------------------------

    def _show_sequence(self) -> None:
        found = self._shell.query(
            'SELECT pg_catalog.format_type(s.seqtypid, NULL) AS "Type", s.seqstart AS "Start",'
            ' s.seqmin AS "Minimum", s.seqmax AS "Maximum", s.seqincrement AS "Increment",'
            " CASE WHEN s.seqcycle THEN 'yes' ELSE 'no' END AS \"Cycles?\","
            ' s.seqcache AS "Cache" FROM pg_catalog.pg_sequence s WHERE s.seqrelid = ?',
            [self._oid],
        )
        owners = self._rows(
            "SELECT pg_catalog.quote_ident(n.nspname) || '.' || pg_catalog.quote_ident(c.relname)"
            " || '.' || pg_catalog.quote_ident(a.attname), d.deptype"
            " FROM pg_catalog.pg_depend d JOIN pg_catalog.pg_class c ON c.oid = d.refobjid"
            " JOIN pg_catalog.pg_namespace n ON n.oid = c.relnamespace"
            " JOIN pg_catalog.pg_attribute a ON a.attrelid = c.oid AND a.attnum = d.refobjsubid"
            " WHERE d.objid = ? AND d.classid = 'pg_catalog.pg_class'::pg_catalog.regclass"
            " AND d.refclassid = 'pg_catalog.pg_class'::pg_catalog.regclass"
            " AND d.deptype IN ('a', 'i')"
        )
        words = {"a": "Owned by", "i": "Sequence for identity column"}
        below = tuple(f"{words[kind]}: {column}" for column, kind in owners[:1])
        self._shell.print_table(found.columns, found.types, found.rows, self._title, below)


def _default(expression: str | None, identity: str, generated: str) -> str:
    if identity:
        return f"generated {'always' if identity == 'a' else 'by default'} as identity"
    if generated:
        return f"generated always as ({expression}) stored"
    return expression or ""


def _index_line(
    name: str,
    primary: bool,
    unique: bool,
    clustered: bool,
    valid: bool,
    definition: str,
    constraint: str | None,
    deferrable: bool | None,
    deferred: bool | None,
    replica: bool,
    exclusion: str | None,
) -> str:
    if constraint == "x":
        text = f'"{name}" {exclusion}'
    else:
        kind = "PRIMARY KEY, " if primary else "UNIQUE, " if unique else ""
        kind = "UNIQUE CONSTRAINT, " if constraint == "u" else kind
        text = f'"{name}" {kind}{definition.partition(" USING ")[2]}'
        text += " DEFERRABLE" if deferrable else ""
        text += " INITIALLY DEFERRED" if deferred else ""
    flags = {" CLUSTER": clustered, " INVALID": not valid, " REPLICA IDENTITY": replica}
    return text + "".join(word for word, is_set in flags.items() if is_set)
