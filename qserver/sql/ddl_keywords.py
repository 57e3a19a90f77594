"""Finds the keywords of CREATE, ALTER, DROP and similar statements by their position.

    ALTER TABLE type ADD COLUMN add int, ALTER type SET DATA TYPE text
    ALTER TABLE NAME ADD COLUMN NAME NAME, ALTER NAME SET DATA TYPE NAME

These words are unreserved and plausible column names. But a count of tokens finds where a
definition names its kind, or an ALTER its next action, so no other word becomes a keyword.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

HEADS: Final = frozenset({"create", "alter", "drop", "truncate", "comment", "set", "show", "reset"})

_SETTING_PHRASES: Final = (
    ("authorization",),
    ("names",),
    ("role",),
    ("schema",),
    ("session", "authorization"),
    ("transaction", "isolation", "level"),
    ("xml", "option"),
)

_FILLERS = frozenset(
    {"or", "replace", "temp", "temporary", "unlogged", "unique", "recursive", "on"}
)
_KINDS = frozenset({"view", "index", "sequence", "type", "schema"})
_ACTIONS = frozenset({"add", "drop", "alter", "rename", "set", "validate", "owner"})
_ACTIONS |= {"cluster", "replica", "reset"}
_SWITCHES = frozenset({"enable", "disable", "force", "no"})
_SWITCHED = (
    ("row", "level", "security"),
    ("force", "row", "level", "security"),
    *(words for what in ("trigger", "rule") for words in ((what,), ("always", what))),
    *(("replica", what) for what in ("trigger", "rule")),
)
_TUNING = frozenset({"storage", "statistics", "compression"})
_CHANGES = frozenset({"set", "drop", "type", "add"})
_SEQUENCE_OPTIONS: Final = {
    **dict.fromkeys(
        ("start", "increment", "minvalue", "maxvalue", "cache", "restart"), "SEQUENCE_OPTION"
    ),
    "cycle": "CYCLE",
    "owned": "OWNED",
}
_LIKE_OPTIONS = frozenset(
    {
        *("all", "comments", "compression", "constraints", "defaults", "generated", "identity"),
        *("indexes", "statistics", "storage"),
    }
)
# After one of these, CASCADE is a name.
_BEFORE_A_NAME = _KINDS | {"table", "column", "constraint", "exists", "only", "concurrently"}
_BEFORE_A_NAME |= {",", ".", "drop", "truncate", "to"}


def noise_word(words: Sequence[str]) -> int:
    """Return the index of LOCAL or GLOBAL before TEMPORARY, which say nothing; -1 without one."""
    at = 3 if words[1:3] == ["or", "replace"] else 1
    is_noise = words[0] == "create" and words[at] in ("local", "global")
    return at if is_noise and words[at + 1] in ("temp", "temporary") else -1


def ddl_keywords(words: Sequence[str]) -> dict[int, str]:
    """Map the index of each keyword to its terminal, in a statement whose first word is in HEADS.

    `words` are the tokens in lower case, with "$" at the end.
    """
    marks: dict[int, str] = {}
    if words[0] in ("show", "reset"):
        mark_setting(words, 1, marks)
        return marks
    at = 1
    while words[at] in _FILLERS:
        at += 1
    kind = words[at]
    if kind in _KINDS:
        marks[at] = kind.upper()
    if words[0] == "alter":
        _mark_alterations(words, at + 1, marks)
    if words[0] == "set":
        _mark_set(words, marks)
    if kind == "table" and words[0] == "create":
        _mark_execute(words, marks)
    if kind == "schema" and words[0] == "create" and "authorization" in words:
        marks[words.index("authorization")] = "AUTHORIZATION"
    if kind == "sequence":
        _mark_options(words, at + 2, len(words), marks)
    if kind == "type" and "enum" in words[:-2]:
        last = words.index("enum", at + 2) if "enum" in words[at + 2 :] else at
        if words[last - 1] == "as":
            marks[last] = "ENUM"
    _mark_here_and_there(words, marks)
    return marks


def _mark_execute(words: Sequence[str], marks: dict[int, str]) -> None:
    """Mark CREATE TABLE … AS EXECUTE: the first AS of the statement that is in no parentheses."""
    depth = 0
    for at, word in enumerate(words[:-1]):
        depth += (word == "(") - (word == ")")
        if word == "as" and depth == 0:
            if words[at + 1] == "execute":
                marks[at + 1] = "EXECUTE"
            return


def _mark_set(words: Sequence[str], marks: dict[int, str]) -> None:
    if words[1] == "transaction" or words[1:3] == ["session", "characteristics"]:
        marks[0] = "TRANSACTION"
        return
    last = max(index for index, word in enumerate(words) if word not in ("$", ";"))
    if words[1] == "constraints" and words[last] in ("deferred", "immediate"):
        marks[1], marks[last] = "CONSTRAINTS", words[last].upper()
        return
    at = 1
    if words[1] in ("session", "local") and words[2] not in ("=", "to", "."):
        marks[1], at = "SET_SCOPE", 2
    mark_setting(words, at, marks)


def mark_setting(words: Sequence[str], at: int, marks: dict[int, str]) -> None:
    """Mark the words of a setting with a syntax of its own: NAMES, SESSION AUTHORIZATION."""
    for phrase in _SETTING_PHRASES:
        end = at + len(phrase)
        if tuple(words[at:end]) == phrase and words[end] not in ("=", "to", "."):
            marks.update(dict.fromkeys(range(at, end), "SETTING_WORD"))
            return


def _mark_alterations(words: Sequence[str], at: int, marks: dict[int, str]) -> None:
    """Mark the actions of ALTER: after the altered name, and after each comma on that level."""
    if words[at : at + 2] == ["if", "exists"]:
        at += 2
    if words[at] == "only":
        at += 1
    while words[at + 1 : at + 2] == ["."]:
        at += 2
    at += 2 if words[at + 1 : at + 2] == ["*"] else 1
    depth = 0
    for index in range(at, len(words)):
        word = words[index]
        depth += (word == "(") - (word == ")")
        if (index == at or (depth == 0 and words[index - 1] == ",")) and word in _ACTIONS:
            marks[index] = word.upper()
            _mark_action(words, index, marks)
        elif (index == at or (depth == 0 and words[index - 1] == ",")) and word in _SWITCHES:
            _mark_switch(words, index, marks)


def _mark_switch(words: Sequence[str], at: int, marks: dict[int, str]) -> None:
    for phrase in _SWITCHED:
        end = at + 1 + len(phrase)
        if tuple(words[at + 1 : end]) == phrase:
            marks[at] = "SWITCH"
            marks.update(dict.fromkeys(range(at + 1, end), "SWITCH_WORD"))


def _mark_action(words: Sequence[str], at: int, marks: dict[int, str]) -> None:
    if words[at : at + 2] == ["set", "schema"]:
        marks[at + 1] = "SCHEMA"
    if words[at] == "set" and words[at + 1] in ("logged", "unlogged"):
        marks[at + 1] = "LOGGING"
    if words[at] == "set" and words[at + 1] == "tablespace":
        marks[at + 1] = "TABLESPACE"
    if words[at] in ("add", "rename") and words[at + 1] == "value" and "'" in words[at + 2 :]:
        marks[at + 1] = "VALUE"
        for index in range(at + 2, len(words)):
            if words[index] in ("before", "after") and words[index + 1] == "'":
                marks[index] = words[index].upper()
    if words[at : at + 2] == ["replica", "identity"]:
        marks[at + 1] = "IDENTITY"
        if words[at + 2] == "full":
            marks[at + 2] = "NAME"
        if words[at + 2 : at + 4] == ["using", "index"]:
            marks[at + 3] = "INDEX"
    if words[at] == "alter":
        change = at + 3 if words[at + 1] == "column" else at + 2
        if change < len(words) - 1:
            _mark_change(words, change, marks)


def _mark_change(words: Sequence[str], at: int, marks: dict[int, str]) -> None:
    """Mark what ALTER COLUMN changes."""
    if _changes_identity(words, at):
        rest = words[at:]
        end = rest.index(",") if "," in rest else len(rest)
        _mark_options(words, at, at + end, marks)
    elif words[at] in _CHANGES:
        marks[at] = words[at].upper()
        if words[at : at + 2] == ["set", "data"]:
            marks[at + 2] = "TYPE"
        if words[at] == "drop" and words[at + 1] in ("identity", "expression"):
            marks[at + 1] = words[at + 1].upper()
        if words[at] == "set" and words[at + 1] in _TUNING:
            marks[at + 1] = "TUNING"


def _changes_identity(words: Sequence[str], at: int) -> bool:
    """Tell whether RESTART, SET GENERATED or SET with an option of a sequence is there."""
    if words[at] == "restart":
        return True
    option = words[at + 2] if words[at + 1 : at + 2] == ["no"] else words[at + 1]
    return words[at] == "set" and (option == "generated" or option in _SEQUENCE_OPTIONS)


def _mark_options(words: Sequence[str], start: int, end: int, marks: dict[int, str]) -> None:
    for index in range(start, end):
        terminal = _SEQUENCE_OPTIONS.get(words[index])
        if terminal and words[index - 1] not in (".", "by", "name"):
            marks[index] = terminal


def _mark_here_and_there(words: Sequence[str], marks: dict[int, str]) -> None:
    for index, word in enumerate(words):
        if word in ("cascade", "restrict"):
            behind = words[index + 1]
            if words[index - 1] in ("delete", "update") or (
                words[0] in ("drop", "truncate", "alter")
                and behind in ("$", ";", ",")
                and words[index - 1] not in _BEFORE_A_NAME
            ):
                marks[index] = "BEHAVIOR"
        elif word in ("including", "excluding"):
            if words[index + 1] in _LIKE_OPTIONS and words[index - 1] not in ("(", ",", "table"):
                marks[index] = "LIKE_OPTION"
        elif word == "stored" and words[index - 1] == ")":
            marks[index] = "STORED"
        elif word == "commit" and words[index - 1] == "on":
            marks[index] = "COMMIT"
            if words[index + 1] == "drop":
                marks[index + 1] = "DROP"
        elif word == "identity" and words[index + 1] == "(":
            end = words.index(")", index) if ")" in words[index:] else index
            _mark_options(words, index + 2, end, marks)
            for at in range(index + 2, end):
                if words[at : at + 2] == ["sequence", "name"]:
                    marks[at] = "SEQUENCE"
