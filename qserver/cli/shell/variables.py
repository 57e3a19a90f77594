"""Variables of the shell: \\set, `:name` in statements, and those that the shell sets or reads.

    :name     the text as it is        :'name'    a literal of SQL
    :{?name}  TRUE or FALSE: is it set?   :"name"   a name of SQL, in quotes

A variable that is not set stays in the text, as in `a[1:n]`, and the server reads it.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Final

from qserver import __version__
from qserver.errors import InvalidRequest
from qserver.functions.text.quoting import quote_literal
from qserver.values.identifiers import quoted

_NAME: Final = re.compile(r"\w+")
_SWITCHES: Final = frozenset({"ON_ERROR_STOP", "QUIET", "BLOCKS"})
_CHOICES: Final[Mapping[str, tuple[str, ...]]] = {
    "ECHO": ("none", "queries", "errors", "all"),
    "VERBOSITY": ("default", "verbose", "terse", "sqlstate"),
    "AUTOCOMMIT": ("on",),
}
_UNSET: Final = {"ECHO": "none", "VERBOSITY": "default", "AUTOCOMMIT": "on"} | dict.fromkeys(
    _SWITCHES, "off"
)


class Variables:
    def __init__(self) -> None:
        self._values: dict[str, str] = {
            "AUTOCOMMIT": "on",
            "BLOCKS": "on",
            "ECHO": "none",
            "ERROR": "false",
            "LAST_ERROR_MESSAGE": "",
            "LAST_ERROR_SQLSTATE": "00000",
            "ON_ERROR_STOP": "on",
            "QUIET": "off",
            "ROW_COUNT": "0",
            "SQLSTATE": "00000",
            "VERBOSITY": "default",
            "VERSION": f"qserver {__version__}",
            "VERSION_NAME": __version__,
        }

    def __iter__(self) -> Iterator[tuple[str, str]]:
        return iter(sorted(self._values.items()))

    def get(self, name: str) -> str | None:
        return self._values.get(name)

    def __getitem__(self, name: str) -> str:
        return self._values[name]

    def is_on(self, name: str) -> bool:
        return self._values[name] == "on"

    def assign(self, name: str, value: str) -> None:
        """Set a variable; raises if it has a meaning, and the value has none."""
        if _NAME.fullmatch(name) is None:
            raise InvalidRequest(
                f"invalid variable name: {name!r}", hint="It has letters, digits and _ only."
            )
        if name in _SWITCHES:
            value = "on" if is_true(value or "on", name) else "off"
        choices = _CHOICES.get(name)
        if choices is not None:
            value = value.lower() or _UNSET[name]
            if value not in choices:
                hint = f"It can be {', '.join(choices)}."
                if name == "AUTOCOMMIT":
                    hint = "BEGIN opens a transaction, and COMMIT ends it."
                raise InvalidRequest(f"unrecognized value {value!r} for {name!r}", hint=hint)
        self._values[name] = value

    def unset(self, name: str) -> None:
        if name in _UNSET:
            self._values[name] = _UNSET[name]
        else:
            self._values.pop(name, None)

    def tell(self, **values: object) -> None:
        """Set those that tell of the last statement."""
        self._values.update({name: str(value) for name, value in values.items()})

    def expanded(self, found: re.Match[str]) -> str | None:
        """The text in place of a match of `splitting.VARIABLE`; None: it stays."""
        kind = found.lastgroup
        assert kind is not None, "one of its groups matches"
        value = self._values.get(found[kind])
        if kind == "test":
            return "FALSE" if value is None else "TRUE"
        if value is None or kind == "plain":
            return value
        return quote_literal(value) if kind == "literal" else quoted(value)


def is_true(text: str, name: str) -> bool:
    """A boolean as psql reads it: a beginning of true, false, yes, no; on, off, 1, 0."""
    word = text.strip().rstrip(";").lower()
    if word in ("on", "1") or (word and any(each.startswith(word) for each in ("true", "yes"))):
        return True
    if word in ("off", "of", "0") or (
        word and any(each.startswith(word) for each in ("false", "no"))
    ):
        return False
    raise InvalidRequest(
        f"unrecognized value {text!r} for {name!r}", hint="A Boolean is expected: on or off."
    )
