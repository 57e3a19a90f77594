"""Random changes of rows that have one meaning, whatever keys the tables have.

No column of a key is changed: where a replica has no keys, nothing would refuse two equal ones.
"""

from __future__ import annotations

from random import Random

from tests.differential.expressions import Expressions, Scope, Visible
from tests.differential.schema import Schema, Table, random_value


def random_change(chance: Random, schema: Schema) -> str:
    table = chance.choice(schema.tables)
    lot = chance.random()
    if lot < 0.4:
        return random_rows(chance, table, chance.randint(1, 3))
    scope = Scope(tuple(Visible(column.name, column.kind) for column in table.columns))
    condition = Expressions(chance).condition(scope, 1)
    free = [column for column in table.writable if column.name not in table.key]
    if lot < 0.6 or not free:
        return f"DELETE FROM {table.name} WHERE {condition} AND id % 3 = {chance.randrange(3)}"
    column = chance.choice(free)
    value = random_value(chance, column)
    return f"UPDATE {table.name} SET {column.name} = {value} WHERE {condition}"


def random_rows(chance: Random, table: Table, count: int) -> str:
    """An INSERT of so many rows whose ids are new, most probably."""
    rows = []
    first = chance.randint(30, 10_000)
    for number in range(first, first + count):
        values = [
            str(number) if column.name == "id" else random_value(chance, column)
            for column in table.writable
        ]
        rows.append(f"({', '.join(values)})")
    names = ", ".join(column.name for column in table.writable)
    return f"INSERT INTO {table.name} ({names}) VALUES {', '.join(rows)}"
