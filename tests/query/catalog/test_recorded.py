"""PostgreSQL's own rows are read at once, in C: a first look at a catalog holds up everybody."""

from __future__ import annotations

import pytest

from qserver.query.catalog.data import recorded_rows, relations
from tests.known_work import calls_of

CALLS_OF_ROW = 10
"""For the few columns whose values are no JSON."""


@pytest.mark.parametrize("name", ["pg_attribute", "pg_description", "pg_operator", "pg_proc"])
def test_rows_are_read_with_few_calls_for_each(name: str) -> None:
    recorded = relations()["pg_catalog", name].recorded
    rows = recorded_rows.__wrapped__
    assert len(rows(name)) == recorded
    assert calls_of(lambda: rows(name)) < CALLS_OF_ROW * recorded
