"""Reads what tools send: files of statements, with what is to be known of each above it.

    -- with ["public", 3]      the parameters, as JSON; in the extended protocol
    -- hides oid, size         columns whose values may differ: sizes, times, what a server has made
    -- unordered               the rows have no order
    -- columns: why            only names and types of columns are the same, for that reason
    -- differs: why            it is answered otherwise on purpose, and has to be

`{class users}` in a statement is the oid of that relation, which the tool had asked for before; so
are type, namespace and role."""

from __future__ import annotations

import json
import re
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Final

FOLDER: Final = Path(__file__).parent
SCHEMA: Final = FOLDER / "schema.sql"
SENT: Final = sorted((FOLDER / "statements").glob("*.sql"))
REFERENCE: Final = re.compile(r"\{(class|type|namespace|role) ([\w. \"]+)\}")
_END: Final = re.compile(r";[ \t]*\n")
_ABOUT: Final = re.compile(r"-- (with|hides|unordered|columns:|differs:) ?(.*)")


@dataclass(frozen=True)
class Sent:
    """A statement of a tool."""

    sql: str
    line: int
    parameters: tuple[str | None, ...] = ()
    hidden: frozenset[str] = frozenset()
    ordered: bool = True
    columns_only: str = ""
    differs: str = ""


def sent_by(path: Path) -> list[Sent]:
    text = path.read_text(encoding="utf-8")
    found, at = [], 0
    for match in _END.finditer(text):
        found.append(_read(text[at : match.start()], text.count("\n", 0, at) + 1))
        at = match.end()
    assert not text[at:].strip(), f"{path.name} ends without a semicolon"
    return found


def _read(text: str, line: int) -> Sent:
    lines = text.split("\n")
    made = Sent("", line)
    while lines:
        about = _ABOUT.fullmatch(lines[0])
        if about is not None:
            made = _noted(made, about[1], about[2])
        elif lines[0] and not lines[0].startswith("-- "):
            break
        made = replace(made, line=made.line + 1)
        del lines[0]
    return replace(made, sql="\n".join(lines))


def _noted(sent: Sent, word: str, what: str) -> Sent:
    match word:
        case "with":
            return replace(sent, parameters=tuple(map(_text, json.loads(what))))
        case "hides":
            return replace(sent, hidden=frozenset(each.strip() for each in what.split(",")))
        case "unordered":
            return replace(sent, ordered=False)
        case "columns:":
            return replace(sent, columns_only=what)
    return replace(sent, differs=what)


def _text(value: Any) -> str | None:
    return None if value is None else str(value)
