"""Reads a file of SQLite, or of Cloudflare D1, as a Move.

    sqlite_master, pragmas ─► tables ─► facts about their values ─► types ─► CREATE TABLE …
                                                                  └─► rows of texts

The file is only read, as of one moment: one transaction spans everything.
"""

from __future__ import annotations

import re
import sqlite3
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final
from urllib.parse import quote

from qserver.cli.moving.move import Definition, Move, MovedTable
from qserver.cli.moving.sqlite_defaults import default_of
from qserver.cli.moving.sqlite_text import (
    TableText,
    Token,
    read_table,
    rendered,
    text_literal,
    tokens_of,
)
from qserver.cli.moving.sqlite_types import (
    ColumnFacts,
    ColumnType,
    asks_for_form,
    chosen_type,
    form_of,
    precision_of,
)
from qserver.cli.transfer.batches import TextRow
from qserver.errors import InvalidRequest
from qserver.values.identifiers import PUBLIC, quote_identifier, quoted

MAGIC: Final = b"SQLite format 3\0"
ROWS_AT_ONCE: Final = 1000
COLUMNS_AT_ONCE: Final = 100
"""Columns whose values one query looks at; SQLite limits the columns of a result."""
_OWN: Final = re.compile(r"sqlite_|_cf_")
"""Tables of SQLite and of Cloudflare themselves."""
_NO_ACTION: Final = "NO ACTION"


@dataclass(frozen=True, slots=True)
class SourceColumn:
    source: str
    name: str
    type: ColumnType
    not_null: bool
    default: str | None
    key: int
    """Its place in the primary key, from 1; 0 if it is not part of it."""
    nulls: int


@dataclass(frozen=True, slots=True)
class SourceTable:
    source: str
    name: str
    text: TableText
    columns: tuple[SourceColumn, ...]
    row_count: int
    is_counting: bool
    """Does SQLite number the rows, as it does for INTEGER PRIMARY KEY?"""

    @property
    def sql_name(self) -> str:
        return quote_identifier(self.name)

    @property
    def names(self) -> Mapping[str, str]:
        """New names of columns by the old ones in lower case."""
        known = {column.source.lower(): column.name for column in self.columns}
        return known | {name: self.text.folded(name) for name in self.text.generated}

    @property
    def key(self) -> list[SourceColumn]:
        return sorted((each for each in self.columns if each.key), key=lambda each: each.key)


@contextmanager
def sqlite_move(path: Path, name: str) -> Iterator[Move]:
    """What the file holds, as long as the block lasts."""
    try:
        stat = path.stat()
        database = sqlite3.connect(
            f"file:{quote(str(path.absolute()))}?mode=ro", uri=True, isolation_level=None
        )
    except (OSError, sqlite3.Error) as error:
        raise InvalidRequest(f"cannot read {name}: {error}") from error
    try:
        database.create_function("form_of", 1, form_of, deterministic=True)
        database.execute("BEGIN")
        (verdict,) = database.execute("PRAGMA quick_check(1)").fetchone()
        if verdict != "ok":
            raise InvalidRequest(f"{name} is damaged: {verdict}", hint="Repair it first.")
        move = Move(name, f"{stat.st_size} bytes, {stat.st_mtime_ns}")
        _Reader(database, move).read()
        yield move
    except sqlite3.Error as error:
        raise InvalidRequest(f"cannot read {name}: {error}") from error
    finally:
        database.close()


class _Reader:
    """Fills a Move."""

    def __init__(self, database: sqlite3.Connection, move: Move) -> None:
        self._database = database
        self._move = move
        self._tables: dict[str, SourceTable] = {}

    def read(self) -> None:
        found = self._database.execute(
            "SELECT m.type, m.name, m.tbl_name, m.sql, l.type FROM sqlite_master AS m"
            " LEFT JOIN pragma_table_list AS l ON l.name = m.name AND l.schema = 'main'"
            " ORDER BY m.rowid"
        ).fetchall()
        for kind, name, _, sql, sort in found:
            if kind == "table" and self._is_taken(name, sort):
                self._tables[name.lower()] = self._table(name, sql)
        for table in self._tables.values():
            self._define(table)
        for table in self._tables.values():
            self._define_after(table)
        for kind, name, of, sql, _ in found:
            if kind == "index" and sql and of.lower() in self._tables:
                self._index(self._tables[of.lower()], name, sql)
        for table in self._tables.values():
            self._foreign_keys(table)
        for kind, name, of, sql, _ in found:
            if kind == "view":
                text = rendered(_after_name(tokens_of(sql)), {})
                view = name if quoted(name) in sql else name.lower()
                self._after(f"view {name}", f"CREATE VIEW {quote_identifier(view)} {text}")
            elif kind == "trigger":
                self._move.left_out.append(f"trigger {name} of {of}: there are no triggers")

    def _is_taken(self, name: str, sort: str | None) -> bool:
        if sort in ("virtual", "shadow"):
            what = "a virtual table" if sort == "virtual" else "a part of a virtual table"
            self._move.left_out.append(f"table {name}: {what}")
        elif _OWN.match(name):
            if not name.startswith("sqlite_"):
                self._move.remarks.append(f"table {name}: Cloudflare's own, not taken")
        else:
            return True
        return False

    def _after(self, what: str, statement: str) -> None:
        self._move.after.append(Definition(what, statement))

    # --- tables -----------------------------------------------------------------------------------

    def _table(self, name: str, sql: str) -> SourceTable:
        text = read_table(sql)
        info = self._database.execute(f"PRAGMA table_xinfo({quoted(name)})").fetchall()
        plain = [row for row in info if row[6] == 0]
        facts, nulls, count = self._facts(name, [(row[1], row[2]) for row in plain])
        keys = [row for row in info if row[5]]
        declared = keys[0][2].upper() if len(keys) == 1 else ""
        has_row_id = not re.search(r"WITHOUT\s+ROWID\s*(,|$)", sql.rstrip("; \n"), re.IGNORECASE)
        columns = []
        for at, (_, column, kind, not_null, default, key, _) in enumerate(plain):
            chosen = chosen_type(kind, facts[at])
            folded = text.folded(column)
            if chosen.remark:
                remark = f"{name}.{column}: {chosen.remark}: it is {chosen.sql}"
                self._move.remarks.append(remark)
            if text.collated.get(column.lower(), "BINARY") != "BINARY":
                collation = text.collated[column.lower()]
                self._move.left_out.append(f"COLLATE {collation} of {name}.{column}")
            columns.append(
                SourceColumn(column, folded, chosen, bool(not_null), default, key, nulls[at])
            )
        is_counting = declared == "INTEGER" and has_row_id
        return SourceTable(name, text.folded(name), text, tuple(columns), count, is_counting)

    def _facts(
        self, table: str, columns: list[tuple[str, str]]
    ) -> tuple[list[ColumnFacts], list[int], int]:
        """What the values of each column are, how many are NULL, and how many rows there are."""
        found: list[ColumnFacts] = []
        nulls: list[int] = []
        count = 0
        for start in range(0, len(columns), COLUMNS_AT_ONCE):
            part = columns[start : start + COLUMNS_AT_ONCE]
            asked = ", ".join(_questions(*column) for column in part)
            count, *values = self._database.execute(
                f"SELECT count(*), {asked} FROM {quoted(table)}"
            ).fetchone()
            for at in range(0, len(values), len(values) // len(part)):
                null, *told = values[at : at + len(values) // len(part)]
                *_, forms, first, _ = told
                told[-3:-1] = [first if forms == 1 and first else None]
                found.append(ColumnFacts(*told))
                nulls.append(null)
        return found, nulls, count

    def _define(self, table: SourceTable) -> None:
        names = {column.source: quote_identifier(column.name) for column in table.columns}
        lines = []
        for column in table.columns:
            line = f"{names[column.source]} {column.type.sql}"
            if table.is_counting and column.key:
                line += " GENERATED BY DEFAULT AS IDENTITY"
            elif column.default is not None:
                line += self._default(table, column)
            if column.not_null and not column.nulls:
                line += " NOT NULL"
            lines.append(line)
        key = [names[column.source] for column in table.key]
        if key:
            word = "PRIMARY KEY"
            if any(column.nulls for column in table.key):
                word = "UNIQUE"
                self._move.left_out.append(f"PRIMARY KEY of {table.source}: some rows have NULL")
            lines.append(f"{word} ({', '.join(key)})")
        for unique in self._unique(table):
            lines.append(f"UNIQUE ({', '.join(names[column] for column in unique)})")
        body = ",\n  ".join(lines)
        self._move.before.append(f"CREATE TABLE {table.sql_name} (\n  {body}\n)")
        columns = tuple(column.name for column in table.columns)
        self._move.tables.append(
            MovedTable(PUBLIC, table.name, columns, table.row_count, lambda: self._rows(table))
        )

    def _default(self, table: SourceTable, column: SourceColumn) -> str:
        default = default_of(str(column.default), column.type.sql)
        if default.is_plain:
            return f" DEFAULT {default.sql}"
        what = f"DEFAULT {column.default} of {table.source}.{column.source}"
        self._after(what, f"{_alter_column(table, column)} SET DEFAULT {default.sql}")
        return ""

    def _unique(self, table: SourceTable) -> list[list[str]]:
        listed = self._database.execute(f"PRAGMA index_list({quoted(table.source)})").fetchall()
        found = []
        for _, name, _, origin, _ in sorted(listed, reverse=True):
            if origin == "u":
                info = self._database.execute(f"PRAGMA index_info({quoted(name)})")
                found.append([column for _, _, column in info])
        return found

    def _rows(self, table: SourceTable) -> Iterator[TextRow]:
        columns = ", ".join(quoted(column.source) for column in table.columns)
        cells = [column.type.cell for column in table.columns]
        try:
            cursor = self._database.execute(f"SELECT {columns} FROM {quoted(table.source)}")
            cursor.arraysize = ROWS_AT_ONCE
            while rows := cursor.fetchmany():
                for row in rows:
                    yield [cell(value) for cell, value in zip(cells, row, strict=True)]
        except sqlite3.Error as error:
            raise InvalidRequest(str(error)) from error

    # --- behind the rows --------------------------------------------------------------------------

    def _define_after(self, table: SourceTable) -> None:
        names, table_name = table.names, table.sql_name
        for name, expression in table.text.generated.items():
            kind = self._declared(table, name)
            text = rendered(expression, names)
            self._after(
                f"generated column {table.source}.{name}",
                f"ALTER TABLE {table_name} ADD COLUMN {quote_identifier(names[name])} {kind}"
                f" GENERATED ALWAYS AS ({text}) STORED",
            )
        for check, condition in table.text.checks:
            if not _is_of_type(condition, table):
                text = rendered(condition, names)
                named = f"CONSTRAINT {quote_identifier(check)} " if check else ""
                self._after(
                    f"CHECK ({text}) of {table.source}",
                    f"ALTER TABLE {table_name} ADD {named}CHECK ({text})",
                )
        if table.is_counting:
            column = table.key[0]
            counted = f"pg_get_serial_sequence({text_literal(table_name)}, "
            counted += f"{text_literal(column.name)})"
            last = self._last_number(table)
            if last > 0:
                self._after(f"the number of {table.source}", f"SELECT setval({counted}, {last})")

    def _declared(self, table: SourceTable, column: str) -> str:
        info = self._database.execute(f"PRAGMA table_xinfo({quoted(table.source)})").fetchall()
        name, kind = next((row[1], row[2]) for row in info if row[1].lower() == column)
        facts, _, _ = self._facts(table.source, [(name, kind)])
        return chosen_type(kind, facts[0]).sql

    def _last_number(self, table: SourceTable) -> int:
        key = quoted(table.key[0].source)
        (most,) = self._database.execute(
            f"SELECT coalesce(max({key}), 0) FROM {quoted(table.source)}"
        ).fetchone()
        if table.text.has_autoincrement:
            given = self._database.execute(
                "SELECT max(seq) FROM sqlite_sequence WHERE name = ?", (table.source,)
            ).fetchone()
            most = max(most, given[0] or 0)
        return int(most)

    def _index(self, table: SourceTable, name: str, sql: str) -> None:
        tokens = tokens_of(sql)
        at = next(at for at, token in enumerate(tokens) if token.word == "ON")
        unique = "UNIQUE " if any(token.word == "UNIQUE" for token in tokens[:at]) else ""
        rest, collations = _without_collations(tokens[at + 2 :])
        for collation in collations:
            self._move.left_out.append(f"COLLATE {collation} of index {name}")
        index = quote_identifier(name if quoted(name) in sql else name.lower())
        self._after(
            f"index {name}",
            f"CREATE {unique}INDEX {index} ON {table.sql_name} {rendered(rest, table.names)}",
        )

    def _foreign_keys(self, table: SourceTable) -> None:
        found: dict[int, list[Any]] = {}
        for row in self._database.execute(f"PRAGMA foreign_key_list({quoted(table.source)})"):
            found.setdefault(row[0], []).append(row)
        deferred = table.text.deferred[::-1]  # the pragma begins with the last one
        for number, rows in sorted(found.items(), reverse=True):
            _, _, parent, _, _, on_update, on_delete, _ = rows[0]
            what = f"foreign key of {table.source} ({', '.join(row[3] for row in rows)})"
            target = self._tables.get(parent.lower())
            if target is None:
                self._move.left_out.append(f"{what}: there is no table {parent}")
                continue
            columns = ", ".join(quote_identifier(table.names[row[3].lower()]) for row in rows)
            keys = [target.names.get(row[4].lower(), row[4]) for row in rows if row[4]]
            keys = keys or [column.name for column in target.key]
            clause = f"FOREIGN KEY ({columns}) REFERENCES {target.sql_name}"
            clause += f" ({', '.join(map(quote_identifier, keys))})"
            clause += "".join(
                f" ON {event} {action}"
                for event, action in (("DELETE", on_delete), ("UPDATE", on_update))
                if action != _NO_ACTION
            )
            if number < len(deferred) and deferred[number]:
                clause += " DEFERRABLE INITIALLY DEFERRED"
            self._after(what, f"ALTER TABLE {table.sql_name} ADD {clause}")


def _questions(column: str, declared: str) -> str:
    """What is asked about a column, in the order of `ColumnFacts`, after the count of NULLs."""
    name = quoted(column)
    kind = f"typeof({name})"
    number = f"CASE WHEN {kind} IN ('integer', 'real') THEN {name} END"
    zero = f"{kind} = 'text' AND instr(CAST({name} AS BLOB), x'00') > 0"
    form = f"CASE WHEN {kind} = 'text' THEN form_of({name}) END"
    is_formed = asks_for_form(declared)
    exact = precision_of(declared)
    unfit = "0"
    if exact is not None:
        most = 10 ** (exact[0] - exact[1])
        unfit = f"sum({kind} = 'real' AND round({name}, {exact[1]}) <> {name}"
        unfit += f" OR abs({number}) >= {most})"
    counts = (f"{kind} = '{each}'" for each in ("null", "integer", "real", "text", "blob"))
    return ", ".join(
        [
            *(f"coalesce(sum({each}), 0)" for each in (*counts, zero)),
            f"min({number})",
            f"max({number})",
            f"coalesce(max(CASE WHEN {kind} = 'text' THEN length({name}) END), 0)",
            f"count(DISTINCT {form})" if is_formed else "0",
            f"max({form})" if is_formed else "NULL",
            f"coalesce({unfit}, 0)",
        ]
    )


def _alter_column(table: SourceTable, column: SourceColumn) -> str:
    return f"ALTER TABLE {table.sql_name} ALTER COLUMN {quote_identifier(column.name)}"


def _after_name(tokens: list[Token]) -> list[Token]:
    """What stands behind the name in CREATE VIEW."""
    at = next(at for at, token in enumerate(tokens) if token.word == "VIEW") + 1
    if tokens[at].word == "IF":
        at += 3
    return tokens[at + (3 if tokens[at + 1].text == "." else 1) :]


def _without_collations(tokens: list[Token]) -> tuple[list[Token], list[str]]:
    kept: list[Token] = []
    collations = []
    at = 0
    while at < len(tokens):
        if tokens[at].word == "COLLATE":
            if tokens[at + 1].name.upper() != "BINARY":
                collations.append(tokens[at + 1].name)
            at += 2
            continue
        kept.append(tokens[at])
        at += 1
    return kept, collations


def _is_of_type(condition: tuple[Token, ...], table: SourceTable) -> bool:
    """Is this `flag IN (0, 1)` of a boolean, which its type says already?"""
    words = [token.text for token in condition[1:]]
    if [word.upper() for word in words] not in (["IN", "(", "0", ",", "1", ")"],):
        return False
    column = condition[0].name.lower()
    return any(c.source.lower() == column and c.type.sql == "boolean" for c in table.columns)
