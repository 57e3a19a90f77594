"""Random INSERT, UPDATE, DELETE, MERGE and TRUNCATE, each with one right answer.

A row of the target is joined with one row at most (by the key of the other table), since which of
several is taken is not decided.
"""

from __future__ import annotations

from dataclasses import replace
from random import Random
from typing import Final

from tests.differential.expressions import Scope, Visible
from tests.differential.literals import literal
from tests.differential.queries import Queries
from tests.differential.schema import Column, Table, random_value

CONFLICT_ACTIONS: Final = ("nothing", "nothing", "update", "update", "update where")


class Changes:
    """Draws statements that change rows. Tables are given each time: definitions change them."""

    def __init__(self, random: Random, queries: Queries) -> None:
        self.random = random
        self.queries = queries
        self.expressions = queries.expressions

    def change(self, tables: tuple[Table, ...], views: tuple[Table, ...] = ()) -> tuple[str, Table]:
        """A statement and the table, or the view of one, that it changes."""
        if views and self.random.random() < 0.25:
            view = self.random.choice(views)
            make = self.random.choice((self.insert, self.update, self.delete))
            self.queries.reached["change through a view"] += 1
            return make(view, tables), view
        table = self.random.choice(tables)
        make = self.random.choices(
            (
                self.insert,
                self.insert_query,
                self.update,
                self.update_from,
                self.delete,
                self.delete_using,
                self.merge,
                self.with_change,
                self.truncate,
            ),
            (30, 10, 25, 8, 12, 5, 8, 6, 1),
        )[0]
        self.queries.reached[make.__name__] += 1
        return make(table, tables), table

    # --- INSERT ---

    def insert(self, table: Table, tables: tuple[Table, ...]) -> str:
        if self.random.random() < 0.04:
            return f"INSERT INTO {table.name} DEFAULT VALUES{self.returning(table)}"
        columns = self._some_columns(table)
        rows = [
            f"({', '.join(self._inserted(column) for column in columns)})"
            for _ in range(self.random.choice((1, 1, 2, 4)))
        ]
        names = ", ".join(column.name for column in columns)
        sql = f"INSERT INTO {table.name} ({names}) VALUES {', '.join(rows)}"
        return sql + self.on_conflict(table, columns) + self.returning(table)

    def insert_query(self, table: Table, tables: tuple[Table, ...]) -> str:
        columns = self._some_columns(table)
        kinds = tuple(column.kind for column in columns)
        query = self.queries.query(None, 1, kinds)
        if columns[0].name == "id" and table.key and self.random.random() < 0.8:
            order = ", ".join(f"z.c{number}" for number in range(len(kinds)))
            shifted = f"row_number() OVER (ORDER BY {order}) + {self.random.randint(40, 30_000)}"
            names = ", ".join(f"z.c{number}" for number in range(1, len(kinds)))
            inner = ", ".join(f"c{number}" for number in range(len(kinds)))
            if "json" not in kinds and names:
                sql = f"SELECT {shifted}, {names} FROM ({query.sql}) AS z({inner})"
                query = replace(query, sql=sql)
        names = ", ".join(column.name for column in columns)
        tail = " ON CONFLICT DO NOTHING" if self.random.random() < 0.5 and query.total else ""
        return f"INSERT INTO {table.name} ({names}) {query.sql}{tail}{self.returning(table)}"

    def _some_columns(self, table: Table) -> list[Column]:
        writable = list(table.writable)
        return [
            column
            for column in writable
            if column.name == "id" or not column.nullable or self.random.random() < 0.75
        ] or writable[:1]

    def _inserted(self, column: Column) -> str:
        lot = self.random.random()
        if lot < 0.06 and (column.nullable or "DEFAULT" in column.clause):
            return "DEFAULT"
        if column.name == "id":
            return str(self.random.randint(-2, 40 if lot < 0.4 else 30_000))
        if lot < 0.25:
            return self.expressions.of(column.kind, Scope(), 1)
        return random_value(self.random, column, wild=lot > 0.95)

    def on_conflict(self, table: Table, columns: list[Column]) -> str:
        if self.random.random() < 0.6:
            return ""
        action = self.random.choice(CONFLICT_ACTIONS)
        target = f" ({', '.join(table.key)})" if table.key else ""
        if target and self.random.random() < 0.2:
            target = f" ON CONSTRAINT {table.name}_pkey"
        if action == "nothing" or not target:
            target = target if self.random.random() < 0.5 else ""
            return f" ON CONFLICT{target} DO NOTHING"
        self.queries.reached["ON CONFLICT DO UPDATE"] += 1
        scope = Scope(
            _visible(table)
            + tuple(Visible(f"excluded.{column.name}", column.kind) for column in table.columns)
        )
        sets = self._assignments(table, scope)
        where = f" WHERE {self.expressions.condition(scope, 1)}" if action == "update where" else ""
        return f" ON CONFLICT{target} DO UPDATE SET {sets}{where}"

    # --- UPDATE, DELETE, MERGE ---

    def update(self, table: Table, tables: tuple[Table, ...]) -> str:
        scope = Scope(_visible(table))
        sets = self._assignments(table, scope)
        return f"UPDATE {table.name} SET {sets}{self._where(scope)}{self.returning(table)}"

    def update_from(self, table: Table, tables: tuple[Table, ...]) -> str:
        joined = self._partner(table, tables)
        if joined is None:
            return self.update(table, tables)
        other, on = joined
        scope = Scope(_visible(table) + _visible(other, "o"))
        sets = self._assignments(table, scope)
        extra = f" AND {self.expressions.condition(scope, 1)}" if self.random.random() < 0.4 else ""
        returning = self.returning(table, scope)
        return f"UPDATE {table.name} SET {sets} FROM {other.name} AS o WHERE {on}{extra}{returning}"

    def delete(self, table: Table, tables: tuple[Table, ...]) -> str:
        scope = Scope(_visible(table))
        condition = f"({self.queries.likely(scope, 2)})"
        if self.random.random() < 0.7:
            condition = f"{table.name}.{table.columns[0].name} > 6 AND {condition}"
        return f"DELETE FROM {table.name} WHERE {condition}{self.returning(table)}"

    def delete_using(self, table: Table, tables: tuple[Table, ...]) -> str:
        joined = self._partner(table, tables)
        if joined is None:
            return self.delete(table, tables)
        other, on = joined
        scope = Scope(_visible(table) + _visible(other, "o"))
        condition = self.expressions.condition(scope, 1)
        returning = self.returning(table, scope)
        where = f"{on} AND {condition}"
        return f"DELETE FROM {table.name} USING {other.name} AS o WHERE {where}{returning}"

    def merge(self, table: Table, tables: tuple[Table, ...]) -> str:
        sources = [other for other in tables if other.key == ("id",) and other is not table]
        if not sources or table.key != ("id",):
            return self.update(table, tables)
        other = self.random.choice(sources)
        both = Scope(_visible(table) + _visible(other, "o"))
        source_only = Scope(_visible(other, "o"))
        arms: list[str] = []
        for _ in range(self.random.randint(1, 3)):
            matched = self.random.random() < 0.6
            scope = both if matched else source_only
            test = (
                f" AND {self.expressions.condition(scope, 1)}" if self.random.random() < 0.5 else ""
            )
            if matched:
                sets = self._assignments(table, both, keys=False)
                action = self.random.choice((f"UPDATE SET {sets}", "DELETE", "DO NOTHING"))
                arms.append(f"WHEN MATCHED{test} THEN {action}")
            else:
                arms.append(f"WHEN NOT MATCHED{test} THEN {self._merge_insert(table, source_only)}")
        on = f"{table.name}.id = o.id"
        lot = self.random.random()
        if lot < 0.2:
            self.queries.reached["MERGE USING a query"] += 1
            used = f"(SELECT * FROM {other.name} WHERE id IS NOT NULL) AS o"
        elif lot < 0.4:
            self.queries.reached["WITH … MERGE"] += 1
            tail = f"MERGE INTO {table.name} USING o ON {on} {' '.join(arms)}"
            return f"WITH o AS (SELECT * FROM {other.name} WHERE id > 2) {tail}"
        else:
            used = f"{other.name} AS o"
        return f"MERGE INTO {table.name} USING {used} ON {on} {' '.join(arms)}"

    def _merge_insert(self, table: Table, scope: Scope) -> str:
        if self.random.random() < 0.2:
            return "DO NOTHING"
        columns = self._some_columns(table)
        values = [
            "o.id" if column.name == "id" else self.expressions.of(column.kind, scope, 1)
            for column in columns
        ]
        return f"INSERT ({', '.join(each.name for each in columns)}) VALUES ({', '.join(values)})"

    def truncate(self, table: Table, tables: tuple[Table, ...]) -> str:
        return f"TRUNCATE {table.name}{self.random.choice(('', '', ' CASCADE'))}"

    def with_change(self, table: Table, tables: tuple[Table, ...]) -> str:
        """A change within WITH, whose rows a SELECT reads."""
        make = self.random.choice((self.insert, self.update, self.delete))
        sql = make(table, tables).split(" RETURNING ")[0]
        names = [column.name for column in table.columns]
        chosen = ", ".join(self.random.sample(names, min(3, len(names))))
        return f"WITH changed AS ({sql} RETURNING {chosen}) SELECT *, 1 AS one FROM changed"

    def _partner(self, table: Table, tables: tuple[Table, ...]) -> tuple[Table, str] | None:
        """Another table, and a condition by which one row of it at most belongs to each of ours."""
        usable = [other for other in tables if other.key == ("id",)]
        numbers = [column for column in table.columns if column.kind in ("int2", "int4", "int8")]
        if not usable or not numbers:
            return None
        other, column = self.random.choice(usable), self.random.choice(numbers)
        return other, f"o.id = {table.name}.{column.name}"

    def _assignments(self, table: Table, scope: Scope, *, keys: bool = True) -> str:
        usable = [
            column
            for column in table.writable
            if column.name not in table.key or (keys and self.random.random() < 0.15)
        ]
        if not usable:
            usable = list(table.writable[:1])
        chosen = self.random.sample(usable, self.random.randint(1, min(3, len(usable))))
        if len(chosen) > 1 and self.random.random() < 0.15:
            names = ", ".join(column.name for column in chosen)
            values = [self.expressions.of(column.kind, scope, 1) for column in chosen]
            row = ", ".join(values)
            return f"({names}) = " + self.random.choice(
                (f"({row})", f"ROW({row})", f"(SELECT {row})")
            )
        return ", ".join(self._assignment(column, table, scope) for column in chosen)

    def _assignment(self, column: Column, table: Table, scope: Scope) -> str:
        lot = self.random.random()
        if column.name in table.key:
            return f"{column.name} = {table.name}.{column.name} + 100"
        if lot < 0.06:
            return f"{column.name} = DEFAULT"
        if lot < 0.12:
            return f"{column.name} = {random_value(self.random, column, wild=True)}"
        if lot < 0.3 and column.kind.endswith("[]"):
            element = column.kind.removesuffix("[]")
            return f"{column.name}[{self.random.randint(1, 3)}] = {literal(self.random, element)}"
        if lot < 0.3 and column.kind == "jsonb":
            self.queries.reached["assignment to a part of jsonb"] += 1
            part = self.random.choice(("['a']", "['k']['b']", "[0]", "['b'][1]", "[-1]"))
            return f"{column.name}{part} = {literal(self.random, 'jsonb')}"
        return f"{column.name} = {self.expressions.of(column.kind, scope, 1)}"

    def _where(self, scope: Scope) -> str:
        if self.random.random() < 0.2:
            return ""
        return f" WHERE {self.queries.likely(scope, 1)}"

    def returning(self, table: Table, scope: Scope | None = None) -> str:
        lot = self.random.random()
        if lot < 0.45:
            return ""
        if lot < 0.65:
            return " RETURNING *" if scope is None else f" RETURNING {table.name}.*"
        scope = scope or Scope(_visible(table))
        kinds = [self.random.choice(scope.kinds()) for _ in range(self.random.randint(1, 3))]
        items = (
            f"{self.expressions.of(kind, scope, self.random.choice((0, 1, 1, 3)))} AS r{number}"
            for number, kind in enumerate(kinds)
        )
        return f" RETURNING {', '.join(items)}"


def _visible(table: Table, alias: str | None = None) -> tuple[Visible, ...]:
    name = alias or table.name
    return tuple(Visible(f"{name}.{column.name}", column.kind) for column in table.columns)
