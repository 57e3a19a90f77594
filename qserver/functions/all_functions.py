"""All operators and functions by name, collected from the modules of this folder.

`MODULES` lists the modules; `signatures` says which tuples a module may have.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from types import MappingProxyType, ModuleType
from typing import Any, Final

from qserver.functions import (
    advisory_locks,
    backends,
    catalog_functions,
    chance,
    channels,
    comparisons,
    enums,
    general,
    inputs,
    objects,
    operators,
    sequences,
    series,
    server,
    settings,
    statements,
    typed_comparisons,
    uuids,
)
from qserver.functions.aggregates import basic as aggregates
from qserver.functions.aggregates import ordered_aggregates, statistics
from qserver.functions.arrays import functions as arrays
from qserver.functions.arrays import part_assignment
from qserver.functions.arrays import rows as array_rows
from qserver.functions.datetime import arithmetic as datetime_arithmetic
from qserver.functions.datetime import clock
from qserver.functions.datetime import fields as datetime_fields
from qserver.functions.datetime import from_pattern as datetime_from_pattern
from qserver.functions.datetime import functions as datetime_functions
from qserver.functions.datetime import series as datetime_series
from qserver.functions.datetime import to_char as datetime_to_char
from qserver.functions.datetime import truncation as datetime_truncation
from qserver.functions.json import (
    json_access,
    json_making,
    json_paths,
    jsonb_changes,
    jsonb_reading,
)
from qserver.functions.numbers import (
    angles,
    histogram,
    mathematics,
    number_printing,
    number_reading,
)
from qserver.functions.regex import functions as regex_functions
from qserver.functions.regex import regexes
from qserver.functions.registry import Aggregate, Function, TableFunction
from qserver.functions.signatures import Generic, Signature
from qserver.functions.text import (
    binary,
    concatenation,
    hashing,
    like,
    quoting,
    strings,
    text_format,
    unicode_text,
)

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
    chance,
    uuids,
    settings,
    ordered_aggregates,
    sequences,
    statements,
    advisory_locks,
    backends,
    channels,
    statistics,
    typed_comparisons,
    datetime_series,
    datetime_truncation,
    arrays,
    array_rows,
    binary,
    histogram,
    quoting,
    hashing,
    text_format,
    json_access,
    jsonb_changes,
    json_making,
    jsonb_reading,
    json_paths,
    regex_functions,
    regexes,
    datetime_to_char,
    datetime_from_pattern,
    enums,
    number_printing,
    number_reading,
    part_assignment,
    unicode_text,
    objects,
    inputs,
    server,
    catalog_functions,
)


def _by_name(kind: str) -> Mapping[str, tuple[Any, ...]]:
    found: dict[str, tuple[Any, ...]] = {}
    for module in MODULES:
        announced: Iterable[Signature] = getattr(module, kind, ())
        for each in announced:
            earlier = found.get(each.name, ())
            if any(other.parameters == each.parameters for other in earlier):
                continue  # the first wins; a test finds such pairs
            found[each.name] = (*earlier, each)
    return MappingProxyType(found)


OPERATORS: Final[Mapping[str, tuple[Function | Generic, ...]]] = _by_name("OPERATORS")
FUNCTIONS: Final[Mapping[str, tuple[Function | Generic, ...]]] = _by_name("FUNCTIONS")
AGGREGATES: Final[Mapping[str, tuple[Aggregate | Generic, ...]]] = _by_name("AGGREGATES")
TABLE_FUNCTIONS: Final[Mapping[str, tuple[TableFunction | Generic, ...]]] = _by_name(
    "TABLE_FUNCTIONS"
)
