"""Sameness of rows."""

from __future__ import annotations

from decimal import Decimal
from math import nan

from qserver.values.comparison import same_row


def test_rows_are_the_same_only_in_every_detail() -> None:
    row = (1, "a", Decimal("1.0"), nan, None)
    assert same_row(row, row)
    assert same_row(row, (1, "a", Decimal("1.0"), float("nan"), None))
    assert not same_row(row, (1, "a", Decimal("1.00"), nan, None))
    assert not same_row((1,), (True,)) and not same_row((1,), (1.0,))
    assert not same_row((0.0,), (-0.0,))
    assert same_row(None, None) and not same_row(None, ()) and not same_row((None,), None)
