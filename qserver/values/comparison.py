"""Sameness of rows, which is stricter than SQL's `=`. Statements compare in generated code."""

from __future__ import annotations

from qserver.values.encoding import encode
from qserver.values.keys import Row


def same_row(left: Row | None, right: Row | None) -> bool:
    """Are two rows, or their absence, the same in every visible detail?

    Stricter than `==`, which equates 1.0 and 1.00, or 1 and true, and distinguishes NaN from NaN.
    """
    return left is right or encode(left) == encode(right)
