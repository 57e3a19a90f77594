"""The grids by name."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from tests.differential.enumerated import functions_in_from, qualified_names, rows
from tests.differential.enumerated.grids import Grid

GRIDS: Final[Mapping[str, tuple[Grid, ...]]] = {
    "functions_in_from": functions_in_from.GRIDS,
    "qualified_names": qualified_names.GRIDS,
    "rows": rows.GRIDS,
}
