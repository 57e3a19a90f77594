"""The grids by name."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from tests.differential.enumerated import (
    direct_arguments,
    functions_in_from,
    moments,
    named_in_texts,
    qualified_names,
    rows,
    targets,
    views,
)
from tests.differential.enumerated.grids import Grid

GRIDS: Final[Mapping[str, tuple[Grid, ...]]] = {
    "direct_arguments": direct_arguments.GRIDS,
    "functions_in_from": functions_in_from.GRIDS,
    "moments": moments.GRIDS,
    "named_in_texts": named_in_texts.GRIDS,
    "qualified_names": qualified_names.GRIDS,
    "rows": rows.GRIDS,
    "targets": targets.GRIDS,
    "views": views.GRIDS,
}
