"""How many values some columns have."""

from __future__ import annotations

from typing import NamedTuple


class Distinct(NamedTuple):
    values: float
    """The number of values, or of combinations of them without NULL."""
    nulls: float
    """The share of rows with a NULL."""
