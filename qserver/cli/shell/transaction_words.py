"""Reads BEGIN, COMMIT and ROLLBACK, as far as the shell acts on them itself.

    BEGIN [WORK | TRANSACTION] [READ ONLY | READ WRITE] [ISOLATION LEVEL …] [[NOT] DEFERRABLE]
    COMMIT, END, ROLLBACK, ABORT [WORK | TRANSACTION] [AND NO CHAIN]

Every transaction is serializable, so each level of isolation is granted. Words that would have an
effect here and have none are refused, never ignored.
"""

from __future__ import annotations

from enum import Enum
from typing import Final

from qserver.cli.splitting import Statement
from qserver.errors import FeatureNotSupported, ProgramLimitExceeded, SqlSyntaxError
from qserver.limits import TRANSACTION_STATEMENTS_MAX


class Act(Enum):
    BEGIN = "begin"
    BEGIN_READ_ONLY = "begin read only"
    COMMIT = "commit"
    ROLL_BACK = "rollback"


_ENDS: Final = {
    "commit": Act.COMMIT,
    "end": Act.COMMIT,
    "rollback": Act.ROLL_BACK,
    "abort": Act.ROLL_BACK,
}
_MODES: Final = {
    ("read", "only"): Act.BEGIN_READ_ONLY,
    ("read", "write"): Act.BEGIN,
    ("isolation", "level", "serializable"): None,
    ("isolation", "level", "repeatable", "read"): None,
    ("isolation", "level", "read", "committed"): None,
    ("isolation", "level", "read", "uncommitted"): None,
    ("not", "deferrable"): None,
    ("deferrable",): None,
}


def act_of(statement: Statement) -> Act | None:
    """What the shell does for the statement; None: the server runs it, as ROLLBACK TO."""
    first = statement.words(1)
    if first in (("begin",), ("start",)):
        return _begun(statement.tokens())
    if not first or first[0] not in _ENDS:
        return None
    name, *rest = statement.tokens()
    if rest[:1] in (["work"], ["transaction"]):
        del rest[0]
    if rest[:1] == ["to"]:
        return None
    if rest == ["and", "chain"]:
        raise FeatureNotSupported(
            f"{name.upper()} AND CHAIN is not supported", hint="Send BEGIN after it."
        )
    if rest and rest != ["and", "no", "chain"]:
        raise _not_understood(name, rest)
    return _ENDS[name]


def _begun(tokens: list[str]) -> Act:
    name, *rest = tokens
    if rest[:1] == ["transaction"] or (name == "begin" and rest[:1] == ["work"]):
        del rest[0]
    elif name == "start":
        raise _not_understood(name, rest)
    act = Act.BEGIN
    while rest:
        mode = next((each for each in _MODES if tuple(rest[: len(each)]) == each), None)
        if mode is None:
            raise _not_understood(name, rest)
        act = _MODES[mode] or act
        del rest[: len(mode)]
        if rest[:1] == [","] and len(rest) > 1:
            del rest[0]
    return act


def _not_understood(name: str, rest: list[str]) -> SqlSyntaxError:
    return SqlSyntaxError(f"{name.upper()} is not understood at {rest[0] if rest else 'its end'!r}")


def check_count(block: list[Statement]) -> None:
    """Refuse a block that has more statements than a transaction may."""
    if len(block) > TRANSACTION_STATEMENTS_MAX:
        raise ProgramLimitExceeded(
            f"a transaction has at most {TRANSACTION_STATEMENTS_MAX} statements",
            detail="Nothing of it was sent.",
            hint="Use several transactions, or INSERT several rows with one statement.",
        )
