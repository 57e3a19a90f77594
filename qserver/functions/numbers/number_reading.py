"""to_number: parses a number by a pattern, leniently like PostgreSQL.

    to_number('$1,234.50-', 'L9G999D99S') → -1234.50

Characters that do not fit the pattern are skipped.
"""

from __future__ import annotations

from decimal import Decimal
from typing import Final

from qserver.functions.numbers import numeric_math, numeric_powers
from qserver.functions.numbers.number_patterns import (
    Item,
    NumberPattern,
    not_for_input,
    pattern_of,
)
from qserver.functions.registry import Function
from qserver.values.numerics import fit_numeric
from qserver.values.text_input import numeric_from_text
from qserver.values.types import NUMERIC, TEXT

_DATA: Final = "0123456789.,+-"


def read_number(text: str, format_text: str) -> Decimal | None:
    if not format_text:
        return None
    pattern = pattern_of(format_text)
    if pattern.exponent:
        raise not_for_input("EEEE")
    if pattern.roman:
        raise not_for_input("RN")
    reader = _Reader(pattern, text)
    value = numeric_from_text(reader.number())
    precision = pattern.before + pattern.shifted + reader.read_after
    result = fit_numeric(value, precision, reader.read_after)
    if pattern.shift:
        shift = numeric_powers.power(Decimal(10), Decimal(-pattern.shifted))
        result = numeric_math.multiply(result, shift)
    return result


class _Reader:
    """Walks over a pattern's items and a text."""

    def __init__(self, pattern: NumberPattern, text: str) -> None:
        self.pattern = pattern
        self.text = text
        self.at = 0
        self.sign = ""
        self.digits: list[str] = []
        self.point = False
        self.read_before = 0
        self.read_after = 0

    def number(self) -> str:
        for item in self.pattern.items:
            if self._over():
                break
            if not item.word:
                self.at += 1
            else:
                self._item(item)
        digits = "".join(self.digits)
        return (self.sign or " ") + (digits[:-1] if digits.endswith(".") else digits)

    def _over(self) -> bool:
        return self.at >= len(self.text)

    def _here(self) -> str:
        return self.text[self.at : self.at + 1]

    def _item(self, item: Item) -> None:
        match item.word:
            case "9" | "0" | "." | "D":
                self._digit(item.word)
                self.at += 1
            case "," | "G":
                if not self.pattern.fill and self._here() == ",":
                    self.at += 1
            case "L":
                self._skip(1)
            case "TH" | "th":
                if not self.pattern.point:
                    self._skip(2)
            case "MI":
                self._own_sign("-")
            case "PL":
                self._own_sign("+")
            case "SG":
                self._own_sign("-+")

    def _own_sign(self, signs: str) -> None:
        if self._here() in signs:
            self.sign = self._here()
            self.at += 1
        else:
            self._skip(1)

    def _skip(self, count: int) -> None:
        while count > 0 and not self._over() and self._here() not in _DATA:
            self.at += 1
            count -= 1

    def _digit(self, word: str) -> None:
        if self._here() == " ":
            self.at += 1
        if self._over():
            return
        if not self.sign and word in "09" and self.read_before + self.read_after == 0:
            self._sign_before()
        if self._over():
            return
        was_read = False
        here = self._here()
        if here.isascii() and here.isdigit():
            if self.point and self.read_after == self.pattern.after:
                return
            self.digits.append(here)
            if self.point:
                self.read_after += 1
            else:
                self.read_before += 1
            was_read = True
        elif self.pattern.point and not self.point and here == ".":
            self.digits.append(".")
            self.point = was_read = True
        if not self.sign and self.read_before + self.read_after > 0:
            self._sign_behind(was_read)

    def _sign_before(self) -> None:
        here = self._here()
        negative = here == "-" or (self.pattern.bracket and here == "<")
        if negative or here == "+":
            self.sign = "-" if negative else "+"
            self.at += 1

    def _sign_behind(self, was_read: bool) -> None:
        pattern = self.pattern
        if pattern.sign is not None:
            following = self.text[self.at + 1 : self.at + 2]
            if was_read and following and following in "-+":
                self.sign = following
                self.at += 1
        elif not was_read and (pattern.plus or pattern.minus) and self._here() in "-+":
            self.sign = self._here()


FUNCTIONS: Final = (Function("to_number", (TEXT, TEXT), NUMERIC, read_number, gives_null=True),)
