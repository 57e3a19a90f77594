"""Finds the keywords of a session's statements by their position, as `ddl_keywords` does.

    DECLARE scroll SCROLL CURSOR WITH HOLD FOR …     FETCH FORWARD 5 FROM forward
    DECLARE NAME   SCROLL CURSOR WITH HOLD FOR …     FETCH FORWARD 5 FROM NAME

None of these words is reserved, so each is a name wherever a name has to stand.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Final

Marks = dict[int, str]
Mark = Callable[[Sequence[str], Marks], None]

_CURSOR_OPTIONS: Final = frozenset({"binary", "asensitive", "insensitive", "no", "scroll"})
_DIRECTIONS: Final = frozenset(
    {"next", "prior", "first", "last", "absolute", "relative", "forward", "backward"}
)
_REINDEXED: Final = frozenset({"index", "table", "schema", "database", "system"})
_GRANTED: Final = frozenset({"table", "sequence", "schema", "database", "type"})
_LEADING: Final = frozenset({"full", "freeze", "verbose", "analyze", "analyse"})


def _end(words: Sequence[str]) -> int:
    """Return the index behind the last word."""
    end = len(words)
    while end and words[end - 1] in ("$", ";"):
        end -= 1
    return end


def _deallocate(words: Sequence[str], marks: Marks) -> None:
    if words[1] == "prepare" and _end(words) > 2:
        marks[1] = "PREPARE"


def _discard(words: Sequence[str], marks: Marks) -> None:
    if words[1] in ("plans", "sequences", "temp", "temporary"):
        marks[1] = "DISCARDED"


def _declare(words: Sequence[str], marks: Marks) -> None:
    at = 2
    while words[at] in _CURSOR_OPTIONS:
        marks[at] = "CURSOR_OPTION"
        at += 1
    if words[at] == "cursor":
        marks[at] = "CURSOR"
        if words[at + 1] in ("with", "without") and words[at + 2 : at + 3] == ["hold"]:
            marks[at + 1] = marks[at + 2] = "HOLD"


def _explain(words: Sequence[str], marks: Marks) -> None:
    """Find what is only at the start of a statement, which is behind the options here."""
    at = 1
    if words[1] == "(":
        while words[at] not in (")", "$"):
            at += 1
        at += 1
    else:
        while words[at] in ("analyze", "analyse", "verbose"):
            at += 1
    if words[at : at + 1] == ["execute"]:
        marks[at] = "EXECUTE"
    elif words[at : at + 1] == ["declare"]:
        marks[at] = "DECLARE"
        inner: Marks = {}
        _declare(words[at:], inner)
        marks.update({at + place: terminal for place, terminal in inner.items()})


def _fetch(words: Sequence[str], marks: Marks) -> None:
    if words[1] in _DIRECTIONS and _end(words) > 2:
        marks[1] = "FETCH_DIRECTION"


def _lock(words: Sequence[str], marks: Marks) -> None:
    end = _end(words)
    if words[end - 1] == "nowait" and words[end - 2] not in (",", "lock", "table", ".", "only"):
        end -= 1
        marks[end] = "NOWAIT"
    if words[end - 1] == "mode" and "in" in words[:end]:
        first = words.index("in") + 1
        marks.update(dict.fromkeys(range(first, end), "LOCK_MODE"))


def _maintain(words: Sequence[str], marks: Marks) -> None:
    at = 1
    if words[1] == "(":
        while words[at] in ("(", ","):
            marks[at + 1] = "MAINTAIN_OPTION"
            at += 2
            while words[at] not in (",", ")", "$"):
                at += 1
        at += 1
    else:
        while words[0] != "reindex" and words[at] in _LEADING:
            marks[at] = "MAINTAIN_OPTION"
            at += 1
    if words[0] == "reindex" and at < len(words) and words[at] in _REINDEXED:
        marks[at] = "REINDEX_KIND"


def _grant(words: Sequence[str], marks: Marks) -> None:
    at, depth = 1, 0
    if words[1:4] in (["grant", "option", "for"], ["admin", "option", "for"]):
        marks.update(dict.fromkeys(range(1, 4), "PRIVILEGE"))
        at = 4
    while words[at] not in ("on", "to", "from", "$"):
        depth += (words[at] == "(") - (words[at] == ")")
        if depth == 0 and words[at] not in (",", ")"):
            marks[at] = "PRIVILEGE"
        at += 1
    if words[at] == "on":
        at += 1
        if words[at] == "all" and words[at + 2 : at + 4] == ["in", "schema"]:
            marks.update(dict.fromkeys(range(at, at + 4), "GRANT_KIND"))
        elif words[at] in _GRANTED and words[at + 1] not in (",", "to", "from", "."):
            marks[at] = "GRANT_KIND"
    end = _end(words)
    if words[end - 1] == "option" and words[end - 3 : end - 2] == ["with"]:
        marks.update(dict.fromkeys(range(end - 3, end), "GRANT_TAIL"))
    elif words[end - 1] in ("cascade", "restrict") and words[end - 2] not in (",", "from", "to"):
        marks[end - 1] = "GRANT_TAIL"


_OF: Final[Mapping[str, Mark]] = {
    "deallocate": _deallocate,
    "declare": _declare,
    "discard": _discard,
    "explain": _explain,
    "fetch": _fetch,
    "move": _fetch,
    "lock": _lock,
    **dict.fromkeys(("vacuum", "analyze", "analyse", "reindex"), _maintain),
    **dict.fromkeys(("grant", "revoke"), _grant),
}
HEADS: Final = frozenset(_OF)


def session_keywords(words: Sequence[str]) -> Marks:
    """Map the index of each keyword to its terminal, in a statement whose first word is in HEADS.

    `words` are the tokens in lower case, with "$" at the end.
    """
    marks: Marks = {}
    _OF[words[0]]([*words, "$", "$"], marks)
    return marks
