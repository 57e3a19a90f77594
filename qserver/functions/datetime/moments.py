"""Special date literals: TIMESTAMP 'now', DATE 'today', 'tomorrow 16:00', 'yesterday'.

A literal is converted once in each run of a statement, from its text alone, with this exception:
these words depend on the time, so their conversion needs the run's context.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass
from datetime import timedelta
from typing import Any, Final

from qserver.functions.context import Context
from qserver.values.casts import cast_function
from qserver.values.types import (
    DATETIME_KINDS,
    TIME_KINDS,
    TIMESTAMPTZ,
    SqlType,
)
from qserver.values.zones import on_session_clock

_DAYS: Final = {"yesterday": -1, "today": 0, "tomorrow": 1}
_DAY_WORD: Final = re.compile(rf"\b(?:{'|'.join(_DAYS)})\b", re.IGNORECASE)


@dataclass(frozen=True, slots=True)
class MomentReader:
    """Converts the text of a literal: by the text alone, or `at` the time of a run."""

    read: Callable[[str], Any]
    type: SqlType
    """The type that the text is read as."""
    then: tuple[Callable[[Any], Any], ...] = ()
    """Casts of the read value."""

    def __call__(self, text: str) -> Any:
        return self._cast(self.read(text))

    def at(self, text: str, context: Context) -> Any:
        if len(text) == 10 and text[4] == "-" == text[7]:  # no word has room
            value = self.read(text)
            return self._cast(value) if self.then else value
        word = text.strip().lower()
        if word == "now":
            return self._cast(cast_function(TIMESTAMPTZ, self.type)(context.now))
        if word in _DAYS and self.type.kind in DATETIME_KINDS:
            return self._cast(self.read(_day(word, context)))
        if self.type.kind in DATETIME_KINDS:
            return self(_DAY_WORD.sub(lambda match: _day(match[0], context), text))
        return self(text)

    def _cast(self, value: Any) -> Any:
        for cast in self.then:
            value = cast(value)
        return value


def is_moment_type(sql_type: SqlType) -> bool:
    return sql_type.kind in DATETIME_KINDS or sql_type.kind in TIME_KINDS


def is_moment_word(text: str) -> bool:
    """Tell whether a text depends on the time: one of the words, or a day before a time of day."""
    return text.strip().lower() == "now" or _DAY_WORD.search(text) is not None


def _day(word: str, context: Context) -> str:
    return (on_session_clock(context.now).date() + timedelta(days=_DAYS[word.lower()])).isoformat()
