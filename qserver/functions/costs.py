"""Estimates the cost of a call before it begins, in steps of about a microsecond.

    the default        by the types of the arguments, see `cost_of`
    linear(40)         nanoseconds per byte
    FREE               almost nothing, however long the arguments are
    anything else      costs that depend on more than lengths: repeat, powers, JSON

Generated code charges each row as a step and yields after enough steps. A function of long values
may cost a thousand steps, so it states its cost as a function of its arguments (`Function.cost`).

A call that would cost more than `STEPS_AT_ONCE_MAX` is refused, because nothing else could run
meanwhile; every other is charged, and the next yield check after the row yields.
"""

from __future__ import annotations

from collections.abc import Callable
from datetime import datetime, time
from decimal import Decimal
from functools import lru_cache
from itertools import chain, repeat
from typing import Any, Final, TypeAlias

from qserver.errors import ProgramLimitExceeded
from qserver.functions.text.letters import has_plain_case
from qserver.limits import ARRAY_DIMENSIONS_MAX, STEPS_AT_ONCE_MAX
from qserver.values.arrays import flat
from qserver.values.interval import Interval
from qserver.values.jsonb import Jsonb
from qserver.values.records import Record
from qserver.values.sizes import ELEMENT_BYTES, size_of
from qserver.values.types import TEXT_KINDS, Kind, SqlType
from qserver.values.zoned_time import ZonedTime

Cost: TypeAlias = Callable[..., int]
"""Steps of a call with these arguments, any of which may be None."""

BYTES_SMALL: Final = 1024
"""Arguments shorter than this in total are not charged: no such call takes long."""

_MARK_NANOSECONDS: Final = {
    ",": 300,
    ":": 600,
    '"': 100,
    ".": 1500,
    "[": 1500,
    "{": 1500,
    "\\": 800,
}
"""The parse time beyond that per byte, for each element, member, number with a point, array, object
and escape."""

_READ_NANOSECONDS: Final = {
    **dict.fromkeys((Kind.TEXT, Kind.VARCHAR, Kind.CHAR, Kind.BOOLEAN, Kind.BYTEA), 600),
    **dict.fromkeys((Kind.SMALLINT, Kind.INTEGER, Kind.BIGINT, Kind.JSON), 1600),
    **dict.fromkeys((Kind.REAL, Kind.DOUBLE, Kind.NUMERIC, Kind.JSONB), 3200),
    Kind.DATE: 3800,
    Kind.UUID: 5000,
    Kind.TIME: 10_000,
    Kind.TIMESTAMP: 12_000,
    Kind.TIMETZ: 18_000,
    Kind.TIMESTAMPTZ: 35_000,
    Kind.INTERVAL: 45_000,
}
"""The time to read an element of an array from a short text, by its type."""

_READ_NANOSECONDS_USUAL: Final = 5000
_SLOWLY_SHOWN: Final = frozenset(
    {Kind.REAL, Kind.TIMESTAMP, Kind.TIMESTAMPTZ, Kind.TIME, Kind.TIMETZ, Kind.INTERVAL}
)


def FREE(*arguments: Any) -> int:
    """The cost of a call whose time does not depend on lengths."""
    return 0


@lru_cache(maxsize=64)
def linear(nanoseconds: int) -> Cost:
    """Return the cost of a call that takes this long per byte."""

    def cost(*arguments: Any) -> int:
        return sum(map(size_of, arguments)) * nanoseconds // 1000

    return cost


@lru_cache(maxsize=64)
def linear_from(steps: int, nanoseconds: int) -> Cost:
    """Return `linear`, plus some steps even for short values."""
    more = linear(nanoseconds)
    return lambda *arguments: steps + more(*arguments)


@lru_cache(maxsize=64)
def squared(nanoseconds: int) -> Cost:
    """Return the cost of a call whose time grows with the square of its arguments' bytes."""

    def cost(*arguments: Any) -> int:
        return sum(map(size_of, arguments)) ** 2 * nanoseconds // 1000

    return cost


def json_cost(*arguments: Any) -> int:
    """Parsing JSON: bytes are cheap, but each element creates an object."""
    return sum(map(_json_steps, arguments))


def _json_steps(value: Any) -> int:
    text = value.text if type(value) is Jsonb else value
    if type(text) is not str:
        return size_of(text) * 40 // 1000
    if len(text) * 12 // 1000 > STEPS_AT_ONCE_MAX:
        return len(text) * 12 // 1000  # refused, whatever is in it
    marks: int = sum([text.count(mark) * cost for mark, cost in _MARK_NANOSECONDS.items()])
    return (size_of(text) * 12 + marks) // 1000


def changed_cost(value: Any, *others: Any) -> int:
    """Changing a JSON value: parsing it and what is put into it, and printing the result."""
    added = [each for each in others if type(each) is Jsonb]
    return 2 * json_cost(value, *added) + sum(map(size_of, others)) // 500


def key_cost(*arguments: Any) -> int:
    """Parsing JSON values and making keys of them, which compare part by part."""
    return 3 * json_cost(*arguments)


def array_key_cost(array: Any) -> int:
    """Making a key of an array; an interval is counted out first."""
    leaf = array
    while leaf and type(leaf) is tuple:
        leaf = leaf[-1]
    return size_of(array) * (160 if leaf is None or type(leaf) is Interval else 40) // 1000


def pairs_cost(*arguments: Any) -> int:
    """Parsing two JSON values and comparing each element of one with each of the other."""
    counts = [1 + _elements(each) for each in arguments]
    steps = 4 * json_cost(*arguments)
    return steps + min(counts) * max(counts) // 4


def _elements(value: Any) -> int:
    text = value.text if type(value) is Jsonb else value
    return int(text.count("{") + text.count("[")) if type(text) is str else 0


def repeat_cost(text: Any, times: Any, *others: Any) -> int:
    """repeat: the length of the result."""
    return 0 if text is None or times is None else size_of(text) * max(times, 0) // 1000


def pad_cost(text: Any, length: Any, *others: Any) -> int:
    """lpad, rpad: the requested length."""
    return size_of(text) // 1000 + (0 if length is None else max(length, 0) // 250)


def replace_cost(text: Any, old: Any, new: Any) -> int:
    """replace: both texts, and each replacement."""
    if text is None or old is None or new is None or not old:
        return 0
    longest = len(text) + len(text) // len(old) * max(len(new) - len(old), 0)
    if len(text) * 40 + longest * 2 < BYTES_SMALL * 1000:
        return longest // 1000
    places: int = text.count(old)
    return (2 * len(text) + 50 * places + 2 * places * len(new)) // 1000


def cut_cost(text: Any, characters: Any) -> int:
    """btrim and similar: each character at an end is looked up among those given."""
    if text is None or characters is None:
        return 0
    few = len(characters) <= BYTES_SMALL
    distinct = len(set(characters)) if few else BYTES_SMALL
    return (len(text) * (80 + distinct) // 8 + len(characters) * 60) // 1000


def blanks_cost(text: Any) -> int:
    """btrim and similar of blanks: a text that has none at its ends is left as it is."""
    if not text or (text[0] != " " and text[-1] != " "):
        return 0
    return len(text) * 10 // 1000


def translate_cost(text: Any, old: Any, new: Any) -> int:
    """translate: a table of the characters, and each character of the text."""
    each = 6 if text is None or text.isascii() else 60
    return (size_of(text) * each + (size_of(old) + size_of(new)) * 120) // 1000


def parts_cost(text: Any, delimiter: Any, *others: Any) -> int:
    """string_to_array: each part becomes an element."""
    if text is None:
        return 0
    parts = len(text) if delimiter is None else text.count(delimiter) if delimiter else 1
    return size_of(text) // 500 + parts // 8


def part_cost(text: Any, delimiter: Any, number: Any) -> int:
    """split_part: the parts up to the wanted one."""
    if not text or not delimiter or number is None:
        return 0
    parts = len(text) // len(delimiter)
    return size_of(text) // 400 + (min(number, parts) if number > 0 else parts) // 10


def joined_cost(separator: Any, *values: Any) -> int:
    """concat_ws: the values, and a separator for each."""
    return size_of(separator) * len(values) // 250 + shown_cost(*values)


@lru_cache(maxsize=64)
def list_cost(array_type: SqlType) -> Cost:
    """Return the cost of array_to_string: each element becomes text, or that for NULL, with a
    separator."""
    shown = shown_cost_of(array_type)

    def cost(array: Any, separator: Any, *others: Any) -> int:
        if array is None:
            return 0
        steps = shown(array)
        if steps > STEPS_AT_ONCE_MAX:
            return steps
        between = size_of(separator) + sum(map(size_of, others))
        return steps + between * size_of(array) // ELEMENT_BYTES * 4 // 1000

    return cost


def template_cost(template: Any, *values: Any) -> int:
    """format: any value may be at each placeholder."""
    if template is None:
        return 0
    places: int = template.count("%")
    longest = max(map(shown_cost, values), default=0) if places else 0
    return 2 + size_of(template) * 30 // 1000 + places * (1 + longest)


def pattern_cost(text: Any, pattern: Any) -> int:
    """LIKE: a pattern is compiled once; a piece with `_` is tried at each place of the text."""
    if text is None or pattern is None:
        return 0
    pieces: int = pattern.count("%")
    if "_" not in pattern:
        return 1 + 5 * pieces + (len(text) * 4 + len(pattern) * 200) // 1000
    unknown: int = pattern.count("_")
    compiled = 100 * min(pieces + 1, unknown)
    unknown = unknown if pieces else 0
    return compiled + (len(text) * 2 * (2 + unknown) + len(pattern) * 1500) // 1000


def lower_pattern_cost(text: Any, pattern: Any) -> int:
    """ILIKE: both are made lower case first."""
    if text is None or pattern is None:
        return 0
    return pattern_cost(text, pattern) + lower_cost(text) + lower_cost(pattern)


def lower_cost(text: Any) -> int:
    """lower, upper: letters are looked up one by one if some have no single counterpart."""
    if text is None:
        return 0
    characters: str = text
    if characters.isascii():
        return len(characters) * 6 // 1000
    steps = len(characters) * 60 // 1000
    if steps > STEPS_AT_ONCE_MAX or has_plain_case(characters):
        return steps
    return 5 * steps // 2


def unistr_cost(text: Any) -> int:
    """unistr: each escape."""
    return 0 if text is None else size_of(text) * 2 // 1000 + int(text.count("\\"))


def flat_cost(*arrays: Any) -> int:
    """unnest: the elements are at hand, unless they are in parts of an array."""
    return sum([size_of(array) * (8 if _has_parts(array) else 2) for array in arrays]) // 1000


def _has_parts(array: Any) -> bool:
    return bool(array) and type(array[0]) is tuple


def fill_cost(element: Any, sizes: Any, *others: Any) -> int:
    """array_fill: the number of elements and of parts, which are measured one by one."""
    if sizes is None or len(sizes) > ARRAY_DIMENSIONS_MAX or any(type(n) is tuple for n in sizes):
        return 0  # will be refused
    parts, total = 1, 0
    for size in sizes:
        parts *= max(size or 0, 0)
        total += parts
    return (total + parts * (size_of(element) // ELEMENT_BYTES)) // 11


def factorial_cost(value: Any) -> int:
    return 0 if value is None else 5 + 2 * max(value, 0)


_SHOWN_NANOSECONDS: Final = {
    int: 800,
    float: 850,
    Decimal: 2500,
    str: 3000,
    bytes: 5000,
    **dict.fromkeys((datetime, time, ZonedTime, Interval), 8000),
}
"""The time to print an element of an array, by its class; texts are looked at for what needs
quotes."""

_ODD_FLOAT_NANOSECONDS: Final = 8000
"""The additional time for a float that is printed with an exponent, or as one of 32 bits."""


def shown_cost(*arguments: Any) -> int:
    """Printing values, as text or JSON: each element of an array, each byte of others."""
    return sum(map(_shown_steps, arguments))


def _shown_steps(value: Any) -> int:
    kind = type(value)
    if kind is str or kind is Jsonb:
        return size_of(value) * 12 // 1000
    if kind is not tuple and kind is not Record:
        return size_of(value) * 100 // 1000
    leaf = value
    while leaf and (type(leaf) is tuple or type(leaf) is Record):
        leaf = leaf[-1]
    each = 3000 if kind is Record else _SHOWN_NANOSECONDS.get(type(leaf), 3000)
    if value and type(value[-1]) is tuple:
        each = max(each, 2500)  # parts of an array are printed one by one, too
    size = size_of(value)
    steps = (size // ELEMENT_BYTES * each + size * 4) // 1000
    if type(leaf) is float and kind is tuple and steps <= STEPS_AT_ONCE_MAX:
        steps += _odd_floats(flat(value)) * _ODD_FLOAT_NANOSECONDS // 1000
    return steps


def _odd_floats(values: tuple[Any, ...]) -> int:
    """Makes no instruction per element."""
    sizes = list(map(abs, filter(None, values)))
    return sum(map((1e-4).__gt__, sizes)) + sum(map((1e15).__le__, sizes))


def shown_reals_cost(*arguments: Any) -> int:
    """Printing arrays of 32-bit numbers, whose shortest digits are searched for."""
    return sum(map(size_of, arguments)) // ELEMENT_BYTES * _ODD_FLOAT_NANOSECONDS // 1000


def shown_cost_of(sql_type: SqlType) -> Cost:
    """Return the cost of printing values of a type."""
    reals = sql_type.element is not None and sql_type.element.kind is Kind.REAL
    return shown_reals_cost if reals else shown_cost


_LONG_KINDS: Final = {
    Kind.NUMERIC: linear(100),
    Kind.ARRAY: linear(40),
    Kind.RECORD: linear(40),
    Kind.JSON: json_cost,
    Kind.JSONB: json_cost,
}
_DEFAULT: Final = linear(2)
_OF_TEXT_AS_JSON: Final = linear(12)


_COMPARED: Final = frozenset({"=", "<>", "<", "<=", ">", ">=", "min", "max"})


def _cost_of_type(sql_type: SqlType, returns: SqlType | None, compares: bool) -> Cost:
    """Return the cost of an argument of a type, for a function without a cost of its own."""
    kind = sql_type.kind
    if compares and kind is Kind.JSONB:
        return key_cost
    makes_json = returns is not None and returns.kind in (Kind.JSON, Kind.JSONB)
    prints = makes_json or (returns is not None and returns.kind in TEXT_KINDS)
    if prints and kind in (Kind.ARRAY, Kind.RECORD, Kind.BYTEA):
        return shown_cost_of(sql_type)
    if kind in _LONG_KINDS:
        return _LONG_KINDS[kind]
    return _OF_TEXT_AS_JSON if makes_json else _DEFAULT


@lru_cache(maxsize=1024)
def _sum_of(costs: tuple[Cost, ...]) -> Cost:
    """Return the costs of all arguments together; the last is that of further arguments, too."""
    if len(set(costs)) == 1:
        return costs[0]

    def cost(*arguments: Any) -> int:
        each = chain(costs, repeat(costs[-1]))
        return sum([cost_of_one(one) for cost_of_one, one in zip(each, arguments, strict=False)])

    return cost


def regex_cost(text: Any, pattern: Any, *others: Any) -> int:
    """Regular expressions: the pattern is compiled, and each character visited."""
    if text is None or pattern is None:
        return 0
    steps = 50 + size_of(text) * 60 // 1000 + min(10 * len(pattern), STEPS_AT_ONCE_MAX // 2)
    return steps + sum(map(size_of, others)) * 500 // 1000


_PICTURE: Final = linear_from(15, 3000)
PATTERNED: Final = frozenset(
    {
        *("~", "!~", "~*", "!~*"),
        *("regexp_replace", "regexp_match", "regexp_matches", "regexp_count", "regexp_instr"),
        *("regexp_like", "regexp_substr", "regexp_split_to_array", "regexp_split_to_table"),
    }
)
"""Functions whose second argument is a regular expression."""

_NAMED: Final[dict[str, Cost]] = {
    **dict.fromkeys(("extract", "date_part", "date_trunc", "timezone"), linear(60)),
    **dict.fromkeys(("convert_to", "convert_from"), linear(60)),
    "to_char": _PICTURE,
    "to_date": _PICTURE,
    "to_timestamp": _PICTURE,
    "to_number": _PICTURE,
    **dict.fromkeys(PATTERNED, regex_cost),
}
"""Functions with the same cost for all types."""

BASED: Final = frozenset({"to_char", "to_date", "to_timestamp", "to_number"})
"""Functions that take several steps even for short values."""


def cost_of(
    name: str,
    parameters: tuple[SqlType, ...],
    own: Cost | None,
    returns: SqlType | None = None,
) -> Cost:
    """Return the cost of a call: the function's own, or that of its types."""
    if own is not None:
        return own
    if name in _NAMED and (len(parameters) > 1 or name not in PATTERNED):
        return _NAMED[name]  # ~ before a number is bitwise NOT
    if not parameters:
        return _DEFAULT
    # Functions of arrays compare elements, too.
    compares = name in _COMPARED or any(each.kind is Kind.ARRAY for each in parameters)
    return _sum_of(tuple([_cost_of_type(each, returns, compares) for each in parameters]))


def bytea_cost(text: Any, *others: Any) -> int:
    """Parsing BYTEA: escapes cost more than other characters."""
    escapes = text.count("\\") if type(text) is str else 0
    return (size_of(text) * 5 + escapes * 400) // 1000


@lru_cache(maxsize=64)
def array_text_cost(element: Kind) -> Cost:
    """Return the cost of reading an array: each element by its type, bracket, quote and escape."""
    each = _READ_NANOSECONDS.get(element, _READ_NANOSECONDS_USUAL)

    def cost(text: Any, *others: Any) -> int:
        if type(text) is not str:
            return size_of(text) * 150 // 1000
        elements = 1 + text.count(",")
        steps = (size_of(text) * 30 + elements * each) // 1000
        if steps > STEPS_AT_ONCE_MAX:
            return steps
        if text.count("{") == 1 and not any(map(text.count, '"\\ \t\n')):
            return steps
        marks = sum([text.count(mark) for mark in '{}"\\'])
        return steps + (elements * 5500 + marks * 1000) // 1000

    return cost


def pretty_cost(value: Any) -> int:
    """jsonb_pretty, jsonb_strip_nulls: parsing, and making each part anew."""
    return 2 * json_cost(value)


def digits_cost(array: Any, *others: Any) -> int:
    """Writing out the digits of each float of an array; large and small ones have many."""
    if type(array) is not tuple:
        return 0
    steps = size_of(array) * 160 // 1000
    return steps if steps > STEPS_AT_ONCE_MAX else steps + 3 * _odd_floats(flat(array))


@lru_cache(maxsize=256)
def elements_cost(source: Kind, target: Kind) -> Cost:
    """Return the cost of casting each element of an array."""
    if source is Kind.DOUBLE and target is Kind.NUMERIC:
        return digits_cost
    if source not in TEXT_KINDS or target in TEXT_KINDS:
        return linear(300 if source in _SLOWLY_SHOWN else 100)
    each = _READ_NANOSECONDS.get(target, _READ_NANOSECONDS_USUAL)

    def cost(array: Any, *others: Any) -> int:
        if type(array) is not tuple:
            return 0
        size = size_of(array)
        elements = size // ELEMENT_BYTES if _has_parts(array) else len(array)
        return (size * 40 + elements * each) // 1000

    return cost


def cast_cost(source: SqlType, target: SqlType) -> Cost:
    if target.kind is source.kind and target.element is None:
        return FREE
    if source.element is not None and target.element is not None:
        return elements_cost(source.element.kind, target.element.kind)
    if target.kind in (Kind.JSON, Kind.JSONB) and source.element is not None:
        return shown_cost_of(source)
    if target.kind in (Kind.JSON, Kind.JSONB) or source.kind is Kind.JSONB:
        return FREE if target.kind in TEXT_KINDS else json_cost
    if target.element is not None:
        return array_text_cost(target.element.kind)
    if source.element is not None or source.kind is Kind.RECORD:
        return shown_cost_of(source)
    plain = (*TEXT_KINDS, Kind.UNKNOWN, Kind.JSON, Kind.JSONPATH)
    if target.kind in TEXT_KINDS and source.kind in plain:
        return FREE
    if target.kind is Kind.BYTEA:
        return bytea_cost
    if target.kind is Kind.JSONPATH:
        return linear(4000)
    return linear(20)


def refuse_steps(name: str, steps: int) -> ProgramLimitExceeded:
    """Return the error for a call that would block other tasks too long."""
    return ProgramLimitExceeded(
        f"{name} of values of this size takes too long",
        detail=f"It would take about {steps} steps at once; the limit is {STEPS_AT_ONCE_MAX}.",
        hint="Use shorter values, or cut them into parts.",
    )


def refuse_size(size: int, most: int) -> ProgramLimitExceeded:
    """Return the error for a value that is too long."""
    return ProgramLimitExceeded(
        "value is too large",
        detail=f"It has {size} bytes; the limit is {most}.",
        hint="Cut it into parts, one per row.",
    )
