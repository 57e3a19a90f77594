"""Splits date and time patterns of to_char, to_date and to_timestamp into fields.

    FMDD th Month YYYY   →   Field(DD, fill) blank text text blank Field(Month) blank Field(YYYY)

A field is the longest keyword at its place, in exactly that spelling; around it may be FM (no
padding), TM (names in the session's language, of which there is one) and TH or th (1st). Text in
double quotes is literal; so are other characters that begin no keyword.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache
from typing import Final

_BOTH_CASES: Final = (
    *("A.D.", "A.M.", "AD", "AM", "B.C.", "BC", "CC", "DAY", "DDD", "DD", "DY", "D", "FF1", "FF2"),
    *("FF3", "FF4", "FF5", "FF6", "FX", "HH24", "HH12", "HH", "IDDD", "ID", "IW", "IYYY", "IYY"),
    *("IY", "I", "J", "MI", "MM", "MONTH", "MON", "MS", "OF", "P.M.", "PM", "Q", "RM", "SSSSS"),
    *("SSSS", "SS", "TZH", "TZM", "TZ", "US", "WW", "W", "Y,YYY", "YYYY", "YYY", "YY", "Y"),
)
_KEYWORDS: Final = tuple(
    sorted(
        {*_BOTH_CASES, *(word.lower() for word in _BOTH_CASES), "Day", "Dy", "Month", "Mon"},
        key=lambda word: (-len(word), word),
    )
)
_NOT_DIGITS: Final = frozenset(
    {"A.D.", "A.M.", "AD", "AM", "B.C.", "BC", "DAY", "DY", "FX", "MONTH", "MON", "OF", "P.M."}
    | {"PM", "RM", "TZ", "TZH"}
)


@dataclass(frozen=True, slots=True)
class Field:
    """A keyword as spelled, with its modifiers."""

    word: str
    fill: bool = False  # FM: no blanks, no zeros
    local: bool = False  # TM
    ordinal: str = ""  # TH or th

    @property
    def name(self) -> str:
        """The keyword in upper case."""
        return self.word.upper()

    @property
    def is_digits(self) -> bool:
        return self.name not in _NOT_DIGITS


@dataclass(frozen=True, slots=True)
class Text:
    """One character outside of fields. kind: "quoted", "text", "blank" or "separator"."""

    character: str
    kind: str


Part = Field | Text


@lru_cache(maxsize=1024)
def parts_of(pattern: str) -> tuple[Part, ...]:
    parts: list[Part] = []
    at = 0
    while at < len(pattern):
        prefix = pattern[at : at + 2]
        fill, local = prefix in ("FM", "fm"), prefix in ("TM", "tm")
        at += 2 if fill or local else 0
        word = next((each for each in _KEYWORDS if pattern.startswith(each, at)), None)
        if word is not None:
            at += len(word)
            ordinal = pattern[at : at + 2]
            ordinal = ordinal if ordinal in ("TH", "th") else ""
            at += 2 if ordinal or pattern[at : at + 2] in ("SP", "sp") else 0
            parts.append(Field(word, fill, local, ordinal))
        elif pattern.startswith('"', at):
            at = _take_quoted(pattern, at + 1, parts)
        elif at < len(pattern):
            at += pattern.startswith('\\"', at)
            parts.append(Text(pattern[at], _kind(pattern[at])))
            at += 1
    return tuple(parts)


def _take_quoted(pattern: str, at: int, parts: list[Part]) -> int:
    """Add a text in double quotes, from after the opening quote; return the position after it."""
    while at < len(pattern):
        if pattern[at] == '"':
            return at + 1
        if pattern[at] == "\\" and at + 1 < len(pattern):
            at += 1
        parts.append(Text(pattern[at], "quoted"))
        at += 1
    return at


def _kind(character: str) -> str:
    if character.isspace():
        return "blank"
    return "separator" if is_separator(character) else "text"


def is_separator(character: str) -> bool:
    """Tell whether a character is punctuation, which matches any other punctuation in a text."""
    return " " < character < "\x7f" and not character.isalnum()


MONTHS: Final = (
    *("January", "February", "March", "April", "May", "June", "July", "August", "September"),
    *("October", "November", "December"),
)
DAYS: Final = ("Sunday", "Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday")
ROMAN_MONTHS: Final = ("I", "II", "III", "IV", "V", "VI", "VII", "VIII", "IX", "X", "XI", "XII")


def in_case_of(word: str, name: str) -> str:
    """Return a name in the case of its keyword: MONTH, Month, month."""
    if word.isupper():
        return name.upper()
    return name.lower() if word.islower() else name


def full_name(field: Field, name: str) -> str:
    """Return the name of a month or a day, padded to nine letters, the length of September."""
    text = in_case_of(field.word, name)
    return text if field.fill or field.local else text.ljust(9)
