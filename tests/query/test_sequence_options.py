"""A number that a sequence cannot have is refused where it is given, not by the log."""

from __future__ import annotations

import pytest

from qserver.errors import InvalidTextRepresentation, NumericValueOutOfRange
from tests.sql.databases import opened_sql

HUGE = 2**63


@pytest.mark.parametrize("number", [str(HUGE), "9" * 5000, f"-{HUGE + 1}"])
@pytest.mark.parametrize(
    "statement",
    [
        "CREATE SEQUENCE other INCREMENT {}",
        "CREATE SEQUENCE other START {}",
        "CREATE SEQUENCE other MINVALUE {}",
        "CREATE SEQUENCE other MAXVALUE {}",
        "CREATE SEQUENCE other CACHE {}",
        "ALTER SEQUENCE one INCREMENT {}",
        "ALTER SEQUENCE one RESTART {}",
        "CREATE TABLE t (id INTEGER GENERATED ALWAYS AS IDENTITY (INCREMENT {}))",
    ],
)
async def test_a_number_of_more_than_64_bits_is_refused(statement: str, number: str) -> None:
    async with opened_sql() as sql:
        await sql.execute("CREATE SEQUENCE one")
        with pytest.raises(NumericValueOutOfRange):
            await sql.execute(statement.format(number))
        assert (await sql.execute("SELECT nextval('one')")).rows == [(1,)]


async def test_the_least_number_of_64_bits_is_taken_and_a_fraction_refused() -> None:
    async with opened_sql() as sql:
        await sql.execute(f"CREATE SEQUENCE down INCREMENT -{HUGE}")
        assert (await sql.execute("SELECT nextval('down')")).rows == [(-1,)]
        with pytest.raises(InvalidTextRepresentation):
            await sql.execute("CREATE SEQUENCE other INCREMENT 1.5")
