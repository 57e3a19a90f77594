"""Functions of texts: length, substrings, trimming, padding, replacement.

Positions count characters from 1. A text is a sequence of code points; upper and lower case map one
code point to one, as PostgreSQL does with the locale C.UTF-8, so the length never changes.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import AnyStr, Final

from qserver.errors import InvalidParameterValue, ProgramLimitExceeded, SubstringError
from qserver.functions.costs import (
    FREE,
    blanks_cost,
    cut_cost,
    linear,
    lower_cost,
    pad_cost,
    part_cost,
    repeat_cost,
    replace_cost,
    translate_cost,
)
from qserver.functions.registry import Function
from qserver.functions.text.letters import initcap, lower, upper
from qserver.limits import TEXT_RESULT_LENGTH_MAX
from qserver.values.types import BIGINT, BOOLEAN, INTEGER, TEXT, Kind, SqlType

CHAR: Final = SqlType(Kind.CHAR)


# --- size ----------------------------------------------------------------------------------------


def octet_length(text: str) -> int:
    """Return the bytes in UTF-8."""
    return len(text) if text.isascii() else len(text.encode())


def bit_length(text: str) -> int:
    return 8 * octet_length(text)


# --- substrings ----------------------------------------------------------------------------------


def substring(text: AnyStr, start: int) -> AnyStr:
    return text[max(start - 1, 0) :]


def substring_for(text: AnyStr, start: int, count: int) -> AnyStr:
    """Return `count` characters (or bytes) from `start` on; some may be before the text."""
    if count < 0:
        raise SubstringError("negative substring length not allowed")
    return text[max(start - 1, 0) : max(start - 1 + count, 0)]


def left(text: str, count: int) -> str:
    """Return the first characters; all but the last ones for a negative count."""
    return text[:count]


def right(text: str, count: int) -> str:
    """Return the last characters; all but the first ones for a negative count."""
    if count == 0:
        return ""
    return text[-count:] if -count >= -len(text) else text


def position(piece: str, text: str) -> int:
    return text.find(piece) + 1


def strpos(text: str, piece: str) -> int:
    return text.find(piece) + 1


def starts_with(text: str, prefix: str) -> bool:
    return text.startswith(prefix)


def split_part(text: str, delimiter: str, number: int) -> str:
    """Return the number-th part, counted from the end if negative; empty if there is none."""
    if number == 0:
        raise InvalidParameterValue("field position must not be zero")
    if not text:
        return ""
    if not delimiter:
        return text if number in (1, -1) else ""
    if number > 0:
        parts = text.split(delimiter, number)
        return parts[number - 1] if number <= len(parts) else ""
    parts = text.split(delimiter)  # from the left: "aaa" by "aa" differs from the right
    return parts[number] if -number <= len(parts) else ""


def overlay(text: AnyStr, replacement: AnyStr, start: int) -> AnyStr:
    return overlay_for(text, replacement, start, len(replacement))


def overlay_for(text: AnyStr, replacement: AnyStr, start: int, count: int) -> AnyStr:
    if start <= 0:
        raise SubstringError("negative substring length not allowed")
    return substring_for(text, 1, start - 1) + replacement + substring(text, start + count)


# --- blanks and padding --------------------------------------------------------------------------


def blank_trim(text: str) -> str:
    return text.strip(" ")


def blank_left_trim(text: str) -> str:
    return text.lstrip(" ")


def blank_right_trim(text: str) -> str:
    return text.rstrip(" ")


def trim(text: str, characters: str) -> str:
    """Remove the characters, in any order, at both ends."""
    return text.strip(distinct(characters)) if characters else text


def left_trim(text: str, characters: str) -> str:
    return text.lstrip(distinct(characters)) if characters else text


def right_trim(text: str, characters: str) -> str:
    return text.rstrip(distinct(characters)) if characters else text


def distinct(characters: str) -> str:
    """Return each character once: strip compares each of a text's characters with all of them."""
    return characters if len(characters) < 8 else "".join(dict.fromkeys(characters))


def left_pad(text: str, length: int, filling: str = " ") -> str:
    """Pad on the left, or truncate on the right."""
    return _filling(length - len(text), length, filling) + text[: max(length, 0)]


def right_pad(text: str, length: int, filling: str = " ") -> str:
    return text[: max(length, 0)] + _filling(length - len(text), length, filling)


def _filling(missing: int, length: int, filling: str) -> str:
    if missing <= 0 or not filling:
        return ""
    checked_length(length)
    return (filling * (missing // len(filling) + 1))[:missing]


def repeat(text: str, times: int) -> str:
    checked_length(len(text) * max(times, 0))
    return text * times


def checked_length(length: int) -> None:
    """Refuse a result that would be too long, before it is computed."""
    if length > TEXT_RESULT_LENGTH_MAX:
        raise ProgramLimitExceeded("requested length too large")


# --- replacement ---------------------------------------------------------------------------------


def replace(text: str, old: str, new: str) -> str:
    if not old or old not in text:
        return text
    checked_length(len(text) + text.count(old) * (len(new) - len(old)))
    return text.replace(old, new)


def translate(text: str, old: str, new: str) -> str:
    """Replace each character of `old` by the one at its place in `new`, or by nothing."""
    table: dict[int, str] = {}
    for at, character in enumerate(old):
        table.setdefault(ord(character), new[at : at + 1])
    return text.translate(table)


def reverse(text: str) -> str:
    return text[::-1]


# --- code points ---------------------------------------------------------------------------------


def code_of(text: str) -> int:
    return ord(text[0]) if text else 0


def character_of(code: int) -> str:
    if code < 0:
        raise InvalidParameterValue("character number must be positive")
    if code == 0:
        raise ProgramLimitExceeded("null character not permitted")
    if code > 0x10FFFF:
        raise ProgramLimitExceeded(
            "requested character too large for encoding", detail=f"Its number is {code}."
        )
    if 0xD800 <= code <= 0xDFFF:
        raise ProgramLimitExceeded(
            "requested character not valid for encoding", detail=f"Its number is {code}."
        )
    return chr(code)


def _digits(base: str, bits: int) -> Callable[[int], str]:
    """Return what prints an integer; negative numbers as their bits."""
    all_bits = (1 << bits) - 1
    return lambda value: format(value & all_bits, base)


# --- the tables ----------------------------------------------------------------------------------


def _lengths() -> Iterator[Function]:
    for name in ("length", "char_length", "character_length"):
        for each in (TEXT, CHAR):
            yield Function(name, (each,), INTEGER, len, inline="len({0})", cost=FREE)
    for each in (TEXT, CHAR):
        yield Function("octet_length", (each,), INTEGER, octet_length, sees_blanks=True)
    yield Function("bit_length", (TEXT,), INTEGER, bit_length)


def _trims() -> Iterator[Function]:
    for name, method, of_blanks, of_characters in (
        ("btrim", "strip", blank_trim, trim),
        ("ltrim", "lstrip", blank_left_trim, left_trim),
        ("rtrim", "rstrip", blank_right_trim, right_trim),
    ):
        inline = f"{{0}}.{method}(' ')"
        yield Function(name, (TEXT,), TEXT, of_blanks, inline=inline, cost=blanks_cost)
        yield Function(name, (TEXT, TEXT), TEXT, of_characters, cost=cut_cost)


def _pieces() -> Iterator[Function]:
    for name in ("substring", "substr"):
        yield Function(name, (TEXT, INTEGER), TEXT, substring)
        yield Function(name, (TEXT, INTEGER, INTEGER), TEXT, substring_for)
    yield Function("left", (TEXT, INTEGER), TEXT, left, inline="{0}[:{1}]")
    yield Function("right", (TEXT, INTEGER), TEXT, right)
    find = "({1}.find({0}) + 1)"
    yield Function("position", (TEXT, TEXT), INTEGER, position, inline=find)
    yield Function("strpos", (TEXT, TEXT), INTEGER, strpos, inline="({0}.find({1}) + 1)")
    yield Function("split_part", (TEXT, TEXT, INTEGER), TEXT, split_part, cost=part_cost)
    yield Function("starts_with", (TEXT, TEXT), BOOLEAN, starts_with, inline="{0}.startswith({1})")
    yield Function("overlay", (TEXT, TEXT, INTEGER), TEXT, overlay)
    yield Function("overlay", (TEXT, TEXT, INTEGER, INTEGER), TEXT, overlay_for)


def _paddings() -> Iterator[Function]:
    for name, call in (("lpad", left_pad), ("rpad", right_pad)):
        for others in ((), (TEXT,)):
            parameters = (TEXT, INTEGER, *others)
            length = "len({0}) + {1} + len({2})" if others else "len({0}) + {1}"
            yield Function(
                name, parameters, TEXT, call, cost=pad_cost, explodes=True, length=length
            )


FUNCTIONS: Final = (
    *_lengths(),
    *_trims(),
    *_pieces(),
    Function("lower", (TEXT,), TEXT, lower, cost=lower_cost),
    Function("upper", (TEXT,), TEXT, upper, cost=lower_cost),
    Function("initcap", (TEXT,), TEXT, initcap, cost=linear(200)),
    *_paddings(),
    Function(
        *("repeat", (TEXT, INTEGER), TEXT, repeat),
        inline="{0} * {1}",
        cost=repeat_cost,
        explodes=True,
        length="len({0}) * {1}",
    ),
    Function("replace", (TEXT, TEXT, TEXT), TEXT, replace, cost=replace_cost),
    Function("translate", (TEXT, TEXT, TEXT), TEXT, translate, cost=translate_cost),
    Function("reverse", (TEXT,), TEXT, reverse, inline="{0}[::-1]"),
    Function("ascii", (TEXT,), INTEGER, code_of),
    Function("chr", (INTEGER,), TEXT, character_of),
    *(
        Function(name, (each,), TEXT, _digits(base, bits))
        for name, base in (("to_hex", "x"), ("to_oct", "o"), ("to_bin", "b"))
        for each, bits in ((INTEGER, 32), (BIGINT, 64))
    ),
)

OPERATORS: Final = (
    Function("^@", (TEXT, TEXT), BOOLEAN, starts_with, inline="{0}.startswith({1})", symbol="^@"),
)
