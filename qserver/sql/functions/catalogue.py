"""All operators and functions by name, collected from the modules of this folder.

A module takes part by standing in `MODULES`; which tuples it may have is in `signatures`.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from types import MappingProxyType, ModuleType
from typing import Any, Final

from qserver.sql.functions import (
    aggregates,
    angles,
    array_rows,
    arrays,
    binary,
    clock,
    comparisons,
    concatenation,
    datetime_arithmetic,
    datetime_fields,
    datetime_from_pattern,
    datetime_functions,
    datetime_series,
    datetime_to_char,
    datetime_truncation,
    enums,
    general,
    histogram,
    json_access,
    json_making,
    jsonb_changes,
    jsonb_reading,
    like,
    mathematics,
    number_printing,
    number_reading,
    operators,
    ordered_aggregates,
    part_assignment,
    quoting,
    regex_functions,
    regexes,
    sequences,
    series,
    statistics,
    strings,
    text_format,
    typed_comparisons,
    unicode_text,
)
from qserver.sql.functions.registry import Aggregate, Function, TableFunction
from qserver.sql.functions.signatures import Generic, Signature

MODULES: Final[tuple[ModuleType, ...]] = (
    operators,
    comparisons,
    concatenation,
    like,
    strings,
    mathematics,
    angles,
    series,
    aggregates,
    datetime_arithmetic,
    datetime_fields,
    datetime_functions,
    clock,
    general,
    ordered_aggregates,
    sequences,
    statistics,
    typed_comparisons,
    datetime_series,
    datetime_truncation,
    arrays,
    array_rows,
    binary,
    histogram,
    quoting,
    text_format,
    json_access,
    jsonb_changes,
    json_making,
    jsonb_reading,
    regex_functions,
    regexes,
    datetime_to_char,
    datetime_from_pattern,
    enums,
    number_printing,
    number_reading,
    part_assignment,
    unicode_text,
)


def _by_name(kind: str) -> Mapping[str, tuple[Any, ...]]:
    found: dict[str, tuple[Any, ...]] = {}
    for module in MODULES:
        announced: Iterable[Signature] = getattr(module, kind, ())
        for each in announced:
            earlier = found.get(each.name, ())
            if any(other.parameters == each.parameters for other in earlier):
                continue  # the first counts; a test finds such pairs
            found[each.name] = (*earlier, each)
    return MappingProxyType(found)


OPERATORS: Final[Mapping[str, tuple[Function | Generic, ...]]] = _by_name("OPERATORS")
FUNCTIONS: Final[Mapping[str, tuple[Function | Generic, ...]]] = _by_name("FUNCTIONS")
AGGREGATES: Final[Mapping[str, tuple[Aggregate | Generic, ...]]] = _by_name("AGGREGATES")
TABLE_FUNCTIONS: Final[Mapping[str, tuple[TableFunction | Generic, ...]]] = _by_name(
    "TABLE_FUNCTIONS"
)
