"""Number patterns of to_char and to_number: '999,999.99', 'FM0000', 'S9.99EEEE'.

A pattern is parsed once into its items and their totals: the digits before and after the point,
where zeros begin, and the place of the sign. Keywords, conflicts and errors are PostgreSQL's.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Any, Final

from qserver.errors import FeatureNotSupported, QserverError, SqlSyntaxError

_WORDS: Final = re.compile(
    r"""(?P<word>EEEE|eeee|FM|fm|MI|mi|PL|pl|PR|pr|RN|rn|SG|sg|SP|sp|TH|th|[,.09BCDGLSVbcdglsv])
    |"(?P<quoted>(?:\\.|[^"\\]|\\$)*)(?:"|$) | \\(?P<quote>") | (?P<other>.)""",
    re.VERBOSE | re.DOTALL,
)
PATTERNS_KEPT: Final = 512

_KEEP_CASE: Final = ("RN", "rn", "TH", "th")


_NEED_DIGITS: Final = ("TH", "th")


@dataclass(frozen=True, slots=True)
class Item:
    """A keyword such as 9 or MI, or a literal text."""

    word: str
    text: str = ""


@dataclass(slots=True)
class NumberPattern:
    """A parsed number pattern. Read-only once it is complete."""

    items: list[Item] = field(default_factory=list)
    before: int = 0
    after: int = 0
    shifted: int = 0
    """Digits after V: the number is multiplied by ten for each."""
    zero_start: int | None = None
    """The digit, from 0, at which leading zeros begin."""
    zero_end: int = 0
    point: bool = False
    fill: bool = False
    bracket: bool = False
    minus: bool = False
    plus: bool = False
    roman: bool = False
    shift: bool = False
    exponent: bool = False
    blank: bool = False
    sign: str | None = None
    """The place of the sign for S: "before" or "after"."""
    digits_before_sign: int = 0
    templates: dict[Any, tuple[str, int, int]] = field(default_factory=dict, compare=False)
    """What numbers of a shape come to, see `number_printing`."""

    @property
    def has_templates(self) -> bool:
        """Whether its text follows from the shape of a number: endings such as th need its digits,
        and Roman numerals have none."""
        others = (self.roman, self.exponent, self.shift)
        return not any(others) and all(item.word not in _NEED_DIGITS for item in self.items)

    def add(self, item: Item) -> None:
        self.items.append(item)
        word = item.word
        if not word:
            return
        if self.exponent and word != "EEEE":
            raise _problem('"EEEE" must be the last pattern used')
        add = _ADDERS.get(word)
        if add is not None:
            add(self)

    def add_nine(self) -> None:
        if self.bracket:
            raise _problem('"9" must be ahead of "PR"')
        if self.shift:
            self.shifted += 1
        elif self.point:
            self.after += 1
        else:
            self.before += 1

    def add_zero(self) -> None:
        if self.bracket:
            raise _problem('"0" must be ahead of "PR"')
        if self.zero_start is None and not self.point:
            self.zero_start = self.before
        if self.point:
            self.after += 1
        else:
            self.before += 1
        self.zero_end = self.before + self.after

    def add_blank(self) -> None:
        if self.before == 0 and self.after == 0 and self.zero_start is None:
            self.blank = True

    def add_point(self) -> None:
        if self.point:
            raise _problem("multiple decimal points")
        if self.shift:
            raise _problem('cannot use "V" and decimal point together')
        self.point = True

    def add_fill(self) -> None:
        self.fill = True

    def add_sign(self) -> None:
        if self.sign is not None:
            raise _problem('cannot use "S" twice')
        if self.plus or self.minus or self.bracket:
            raise _problem('cannot use "S" and "PL"/"MI"/"SG"/"PR" together')
        self.sign = "after" if self.point else "before"
        self.digits_before_sign = self.before

    def add_minus(self) -> None:
        self._not_with_sign("MI")
        self.minus = True

    def add_plus(self) -> None:
        self._not_with_sign("PL")
        self.plus = True

    def add_either(self) -> None:
        self._not_with_sign("SG")
        self.minus = self.plus = True

    def _not_with_sign(self, word: str) -> None:
        if self.sign is not None:
            raise _problem(f'cannot use "S" and "{word}" together')

    def add_bracket(self) -> None:
        if self.sign is not None or self.plus or self.minus:
            raise _problem('cannot use "PR" and "S"/"PL"/"MI"/"SG" together')
        self.bracket = True

    def add_roman(self) -> None:
        self.roman = True

    def add_shift(self) -> None:
        if self.point:
            raise _problem('cannot use "V" and decimal point together')
        self.shift = True

    def add_exponent(self) -> None:
        if self.exponent:
            raise _problem('cannot use "EEEE" twice')
        others = (
            self.blank,
            self.fill,
            self.bracket,
            self.minus,
            self.plus,
            self.roman,
            self.shift,
        )
        if any(others) or self.sign is not None:
            raise SqlSyntaxError(
                '"EEEE" is incompatible with other formats',
                detail='"EEEE" may only be used together with digit and decimal point patterns.',
            )
        self.exponent = True


_ADDERS: Final = {
    "9": NumberPattern.add_nine,
    "0": NumberPattern.add_zero,
    "B": NumberPattern.add_blank,
    ".": NumberPattern.add_point,
    "D": NumberPattern.add_point,
    "FM": NumberPattern.add_fill,
    "S": NumberPattern.add_sign,
    "MI": NumberPattern.add_minus,
    "PL": NumberPattern.add_plus,
    "SG": NumberPattern.add_either,
    "PR": NumberPattern.add_bracket,
    "RN": NumberPattern.add_roman,
    "rn": NumberPattern.add_roman,
    "V": NumberPattern.add_shift,
    "EEEE": NumberPattern.add_exponent,
}


@lru_cache(maxsize=PATTERNS_KEPT)
def pattern_of(text: str) -> NumberPattern:
    """Parse a number pattern."""
    pattern = NumberPattern()
    for match in _WORDS.finditer(text):
        word = match["word"]
        if word is not None:
            pattern.add(Item(word if word in _KEEP_CASE else word.upper()))
        elif match["quoted"] is not None:
            for character in re.sub(r"\\(.)", r"\1", match["quoted"], flags=re.DOTALL):
                pattern.add(Item("", character))
        else:
            pattern.add(Item("", match["quote"] or match["other"]))
    return pattern


def not_for_input(word: str) -> QserverError:
    return FeatureNotSupported(f'"{word}" not supported for input')


def _problem(message: str) -> QserverError:
    return SqlSyntaxError(message)
