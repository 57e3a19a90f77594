"""to_char for numbers: lays out digits by a number pattern.

    to_char(-12.345, 'FM999.99') → -12.35      to_char(485, '"No. "999') → No.  485
    to_char(12, '9990999.9')     →    0012.0   to_char(5, '9') → ' 5', with room for a sign

The number first becomes a text of digits with as many after the point as the pattern has, or of #
if it does not fit. `_Layout` then walks over pattern and digits side by side. The places of sign,
blanks and zeros follow PostgreSQL's `NUM_processor` case by case; nobody would design it so, but
programs compare its output.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from decimal import Decimal
from functools import lru_cache
from math import isfinite
from typing import Any, Final

from qserver.errors import InvalidTextRepresentation, NumericValueOutOfRange
from qserver.functions.costs import BYTES_SMALL
from qserver.functions.numbers import numeric_math
from qserver.functions.numbers.number_patterns import PATTERNS_KEPT, Item, NumberPattern, pattern_of
from qserver.functions.registry import Function
from qserver.values.casts import cast_function
from qserver.values.floats import round_to_real
from qserver.values.text_output import text_of_numeric
from qserver.values.types import (
    BIGINT,
    DOUBLE,
    INTEGER,
    INTEGER_BITS,
    NUMERIC,
    REAL,
    TEXT,
    Kind,
    SqlType,
)

_ROMAN: Final = (
    *((1000, "M"), (900, "CM"), (500, "D"), (400, "CD"), (100, "C"), (90, "XC"), (50, "L")),
    *((40, "XL"), (10, "X"), (9, "IX"), (5, "V"), (4, "IV"), (1, "I")),
)
_ROMAN_WIDTH: Final = 15
_END: Final = "\0"
"""Stands for a digit past the last one; PostgreSQL prints nothing after it."""

TEMPLATE_DIGITS_MAX: Final = 64
"""Longer numbers are laid out one by one."""

_DOUBLE_DIGITS, _REAL_DIGITS = 15, 6


@lru_cache(maxsize=PATTERNS_KEPT)
def number_pattern_length(text: str) -> int:
    """Return the length that the cost of a call depends on: nothing where templates serve."""
    is_quick = len(text) <= TEMPLATE_DIGITS_MAX and pattern_of(text).has_templates
    return 0 if is_quick else BYTES_SMALL


def print_numeric(value: Decimal, text: str) -> str:
    pattern = pattern_of(text)
    if pattern.roman:
        return _Layout(pattern, roman(_integer_from_numeric(value)), "+", 0).text()
    if pattern.exponent:
        return _scientific_numeric(value, pattern)
    if pattern.shift:
        value = numeric_math.multiply(value, Decimal(10) ** pattern.shifted)
    rounded = numeric_math.rounded(value, pattern.after) if value.is_finite() else value
    return _laid_out(pattern, text_of_numeric(rounded))


def print_integer(value: int, text: str) -> str:
    return _print_whole(value, pattern_of(text), Kind.INTEGER)


def print_bigint(value: int, text: str) -> str:
    return _print_whole(value, pattern_of(text), Kind.BIGINT)


def _print_whole(value: int, pattern: NumberPattern, kind: Kind) -> str:
    if pattern.roman:
        return _Layout(pattern, roman(value), "+", 0).text()
    if pattern.exponent:
        if kind is Kind.BIGINT:
            return _scientific_numeric(Decimal(value), pattern)
        return f"{float(value): .{pattern.after}e}"
    if pattern.shift:
        value *= 10**pattern.shifted
        if not -(1 << INTEGER_BITS[kind] - 1) <= value < 1 << INTEGER_BITS[kind] - 1:
            raise NumericValueOutOfRange(f"{kind.value} out of range")
    digits = str(value)
    return _laid_out(pattern, f"{digits}.{'0' * pattern.after}" if pattern.after else digits)


def print_double(value: float, text: str) -> str:
    return _print_float(value, pattern_of(text), _DOUBLE_DIGITS)


def print_real(value: float, text: str) -> str:
    return _print_float(value, pattern_of(text), _REAL_DIGITS)


def _print_float(value: float, pattern: NumberPattern, digits_most: int) -> str:
    if pattern.roman:
        whole = round(value) if isfinite(value) and abs(value) < 1e9 else 0
        return _Layout(pattern, roman(whole), "+", 0).text()
    if pattern.exponent:
        if not isfinite(value):
            return _hashes_with_exponent(pattern)
        return f"{value: .{pattern.after}e}"
    if pattern.shift:
        value *= 10.0**pattern.shifted
        value = round_to_real(value) if digits_most == _REAL_DIGITS else value
    if not isfinite(value):
        return _laid_out(pattern, _special(value))
    whole_digits = len(f"{abs(value):.0f}")
    after = max(min(pattern.after, digits_most - whole_digits), 0)
    return _laid_out(pattern, f"{value:.{after}f}", after)


def _special(value: float) -> str:
    if value != value:
        return "NaN"
    return "Infinity" if value > 0 else "-Infinity"


_integer_from_numeric = cast_function(NUMERIC, INTEGER)


def _scientific_numeric(value: Decimal, pattern: NumberPattern) -> str:
    if not value.is_finite():
        return _hashes_with_exponent(pattern)
    exponent = value.adjusted() if value else 0
    digits = numeric_math.rounded(value.scaleb(-exponent, numeric_math.EXACT), pattern.after)
    text = f"{text_of_numeric(digits)}e{exponent:+03d}"
    return text if text.startswith("-") else f" {text}"


def _hashes_with_exponent(pattern: NumberPattern) -> str:
    hashes = "#" * (pattern.before + pattern.after + 6)
    point = pattern.before + 1
    return f" {hashes[1:point]}.{hashes[point + 1 :]}"


def _laid_out(pattern: NumberPattern, number: str, after: int | None = None) -> str:
    """Lay out a number's text with its sign, or # if it does not fit."""
    sign = "-" if number.startswith("-") else "+"
    digits = number.lstrip("-")
    before = pattern.before + pattern.shifted
    whole = len(digits.split(".", 1)[0])
    if whole > before:
        digits = "#" * before + "." + "#" * (pattern.after if after is None else after)
        return _Layout(pattern, digits, sign, 0, after).text()
    if not pattern.has_templates or len(digits) > TEMPLATE_DIGITS_MAX:
        return _Layout(pattern, digits, sign, before - whole, after).text()
    kept = len(digits.rstrip("0")) if pattern.fill and pattern.point else 0
    shape = sign, whole, len(digits), digits[0] == "0", kept, after
    template = pattern.templates.get(shape)
    if template is None:
        template = _template(pattern, digits, _Layout(pattern, digits, sign, before - whole, after))
        pattern.templates[shape] = template
    text, first, end = template
    return text % tuple(digits.replace(".", "", 1)[first:end])


def _template(pattern: NumberPattern, number: str, layout: _Layout) -> tuple[str, int, int]:
    """Return what a number comes to with %s for its digits, and the first and the end of those.

    All numbers of its shape have their digits in the same places: with as many of them before and
    after the point, with 0 as the first one or another, and with as many zeros at the end.
    """
    layout.text()
    end = layout.out.index(_END) if _END in layout.out else len(layout.out)
    places = [digit - number[:digit].count(".") for at, digit in layout.digits.items() if at < end]
    parts = [
        "%s" if at in layout.digits else part.replace("%", "%%")
        for at, part in enumerate(layout.out[:end])
    ]
    first = places[0] if places else 0
    return "".join(parts), first, first + len(places)


def roman(value: int) -> str:
    """Return Roman numerals; # outside of 1 to 3999."""
    if not 1 <= value <= 3999:
        return "#" * _ROMAN_WIDTH
    result = []
    for size, letters in _ROMAN:
        count, value = divmod(value, size)
        result.append(letters * count)
    return "".join(result)


class _Layout:
    """Walks over a pattern's items and a number's digits."""

    def __init__(
        self, pattern: NumberPattern, number: str, sign: str, spaces: int, after: int | None = None
    ) -> None:
        self.pattern = pattern
        self.number = number
        self.sign = "" if pattern.roman else sign
        self.spaces = spaces
        self.at = 0  # the next digit
        self.place = 0  # counts 9, 0 and points of the pattern
        self.in_number = False
        self.out: list[str] = []
        self.digits: dict[int, int] = {}
        """The places in `out` that hold a digit of the number, and where the digit stands there."""
        self.bracket = pattern.bracket
        self.sign_where = pattern.sign
        self.zero = pattern.zero_start is not None and not pattern.roman
        self.zero_start = pattern.zero_start or 0
        self.after = 0 if pattern.roman else pattern.after if after is None else after
        self.before = 0 if pattern.roman else pattern.before + pattern.shifted
        self.point = pattern.point and not pattern.roman
        self._decide_sign()
        self.last = self._last_relevant()
        self.count = self.after + self.before - 1
        if not self.sign_written and self.spaces == 0:
            self.count += 1

    def _decide_sign(self) -> None:
        pattern = self.pattern
        if pattern.plus or pattern.minus:
            self.sign_written = pattern.minus
            return
        if self.sign != "-" and pattern.fill:
            self.bracket = False
        self.sign_written = self.sign == "+" and pattern.fill and pattern.sign is None
        if self.sign_where == "before" and self.before == pattern.digits_before_sign:
            self.sign_where = "after"

    def _last_relevant(self) -> int | None:
        """Return the last digit after the point that FM keeps; the point itself if none."""
        if not (self.pattern.fill and self.point) or "." not in self.number:
            return None
        last = max(len(self.number.rstrip("0")) - 1, self.number.index("."))
        if self.pattern.zero_end > self.spaces:
            last = max(last, min(len(self.number) - 1, self.pattern.zero_end - self.spaces))
        return last

    def text(self) -> str:
        for item in self.pattern.items:
            if not item.word:
                self.out.append(item.text)
            elif item.word in ("9", "0", ".", "D"):
                if not self.pattern.roman:
                    self._digit(item.word)
            else:
                self.out += self._other(item)
        return "".join(self.out).split(_END, 1)[0]

    def _other(self, item: Item) -> Iterator[str]:
        fill = self.pattern.fill
        match item.word:
            case "," | "G":
                if self.in_number or not fill:
                    yield "," if self.in_number else " "
            case "L":
                yield " "
            case "RN" | "rn":
                text = self.number if item.word == "RN" else self.number.lower()
                yield text if fill else text.rjust(_ROMAN_WIDTH)
            case "TH" | "th":
                yield self._ordinal(item.word)
            case "MI":
                yield "-" if self.sign == "-" else "" if fill else " "
            case "PL":
                yield "+" if self.sign == "+" else "" if fill else " "
            case "SG":
                yield self.sign

    def _ordinal(self, word: str) -> str:
        number = self.number
        if self.pattern.roman or number[0] == "#" or self.sign == "-" or self.point:
            return ""
        if not number[-1].isdigit():
            raise InvalidTextRepresentation(f'"{number}" is not a number')
        teen = number[-2:-1] == "1"
        ending = "th" if teen else {"1": "st", "2": "nd", "3": "rd"}.get(number[-1], "th")
        return ending.upper() if word == "TH" else ending

    # --- digits ---

    def _digit(self, word: str) -> None:
        self.in_number = False
        self._sign_before()
        fill = self.pattern.fill
        if self.place < self.spaces and (not self.zero or self.zero_start > self.place):
            self.out.append("" if fill else " ")
        elif self.place < self.spaces and self.zero:
            self.out.append("0")
            self.in_number = True
        else:
            self._next_digit(word)
        self._sign_after()
        self.place += 1

    def _next_digit(self, word: str) -> None:
        current = self.number[self.at : self.at + 1]
        if current == ".":
            self.out.append(".")
        elif self.last is not None and self.at > self.last and word != "0":
            pass
        elif self._is_blank_zero():
            if not self.pattern.fill:
                self.out.append(" ")
            elif self._point_is_last():
                self.out.append("0")
        else:
            if current:
                self.digits[len(self.out)] = self.at
            self.out.append(current or _END)
            self.in_number = True
        self.at += 1 if current else 0

    def _is_blank_zero(self) -> bool:
        """Tell whether this is the 0 before the point, which 9.9 leaves blank."""
        return not self.zero and self.at == 0 and self.number[:1] == "0" and self.after != 0

    def _point_is_last(self) -> bool:
        return self.last is not None and self.number[self.last] == "."

    def _sign_before(self) -> None:
        begins = self.place >= self.spaces or (self.zero and self.zero_start == self.place)
        if self.sign_written or not begins:
            return
        if self._is_blank_zero() and not self._point_is_last():
            return
        if self.pattern.sign is not None:
            if self.sign_where == "before":
                self.out.append(self.sign)
                self.sign_written = True
            return
        if self.bracket:
            self.out.append(" " if self.sign == "+" else "<")
        elif self.sign == "+":
            self.out.append("" if self.pattern.fill else " ")
        else:
            self.out.append("-")
        self.sign_written = True

    def _sign_after(self) -> None:
        end = self.count + (1 if self.spaces else 0) + (1 if self.point else 0)
        if self.last is not None and self.last == self.at:
            end = self.place
        if self.place + 1 != end:
            return
        if self.sign_written and self.bracket:
            self.out.append(" " if self.sign == "+" else ">")
        elif self.pattern.sign is not None and self.sign_where == "after":
            self.out.append(self.sign)


def _to_char(number: SqlType, call: Callable[[Any, str], str]) -> Function:
    names = {call.__name__: call, "number_pattern_length": number_pattern_length}
    length = "number_pattern_length({1})"
    if number == NUMERIC:
        length += " + {0}.__sizeof__()"
    return Function(
        "to_char",
        (number, TEXT),
        TEXT,
        call,
        inline=f"{call.__name__}({{0}}, {{1}})",
        names=names,
        length=length,
    )


FUNCTIONS: Final = (
    _to_char(INTEGER, print_integer),
    _to_char(BIGINT, print_bigint),
    _to_char(NUMERIC, print_numeric),
    _to_char(REAL, print_real),
    _to_char(DOUBLE, print_double),
)
