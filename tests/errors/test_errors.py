"""The error tree: its codes, what it tells a caller, how it reads."""

from __future__ import annotations

import inspect
import re
from collections.abc import Iterator
from typing import Any

import pytest

from qserver import errors
from qserver.errors import (
    Applied,
    OutcomeUnknown,
    QserverError,
    SerializationFailure,
    UndefinedColumn,
    UniqueViolation,
    error_from_plain,
    error_to_plain,
)

CLASSES = [
    value
    for value in vars(errors).values()
    if isinstance(value, type) and issubclass(value, QserverError)
]
by_class = pytest.mark.parametrize("error_class", CLASSES, ids=lambda each: each.__name__)


@by_class
def test_a_class_has_a_sqlstate_and_a_condition_name(error_class: type[QserverError]) -> None:
    assert re.fullmatch(r"[0-9A-Z]{5}", error_class.code)
    assert re.fullmatch(r"[a-z]+(_[a-z]+)+", error_class.name)


@by_class
def test_a_docstring_says_whose_fault_it_is(error_class: type[QserverError]) -> None:
    words = (error_class.__doc__ or "").lower()
    assert error_class is QserverError or "fault" in words or "wish" in words


def test_no_two_classes_share_a_code_or_a_name() -> None:
    assert len({each.code for each in CLASSES}) == len(CLASSES)
    assert len({each.name for each in CLASSES}) == len(CLASSES)


def test_codes_are_those_of_postgresql() -> None:
    codes = {each.__name__: each.code for each in CLASSES}
    expected = {
        "NumericValueOutOfRange": "22003",
        "InvalidTextRepresentation": "22P02",
        "StringDataRightTruncation": "22001",
        "CharacterNotInRepertoire": "22021",
        "DivisionByZero": "22012",
        "DatetimeFieldOverflow": "22008",
        "InvalidDatetimeFormat": "22007",
        "DatatypeMismatch": "42804",
        "CannotCoerce": "42846",
        "NotNullViolation": "23502",
        "UniqueViolation": "23505",
        "ForeignKeyViolation": "23503",
        "CheckViolation": "23514",
        "UndefinedTable": "42P01",
        "UndefinedColumn": "42703",
        "DuplicateTable": "42P07",
        "DuplicateColumn": "42701",
        "SerializationFailure": "40001",
        "OutcomeUnknown": "08007",
        "QueryCanceled": "57014",
        "OutOfMemory": "53200",
        "ProgramLimitExceeded": "54000",
        "TooManyRequests": "53300",
        "DatabaseUnavailable": "57P03",
        "DatabaseDropped": "57P04",
        "PageUnreadable": "58030",
        "DataCorrupted": "XX001",
    }
    assert expected.items() <= codes.items()


def test_only_what_may_succeed_unchanged_is_retryable() -> None:
    retryable = {each.__name__ for each in CLASSES if each.retryable}
    assert retryable == {
        "SerializationFailure",
        "DeadlockDetected",
        "TooManyRequests",
        "DatabaseUnavailable",
        "DatabaseMoved",
        "NotFreshEnough",
        "LogTaken",
        "RateLimited",
        "RequestInProgress",
        "TooManyOpen",
    }


def test_only_a_lost_answer_or_a_failed_log_leaves_the_outcome_unknown() -> None:
    unknown = {each.__name__ for each in CLASSES if each.applied is Applied.UNKNOWN}
    assert unknown == {"OutcomeUnknown", "LogFailed", "ChangeUnconfirmed"}


def test_nothing_is_both_retryable_and_perhaps_applied() -> None:
    assert not [each for each in CLASSES if each.retryable and each.applied is Applied.UNKNOWN]


def test_a_repr_reads_as_a_sentence() -> None:
    error = UndefinedColumn('column "x" does not exist', position=8)
    assert repr(error) == (
        '<undefined_column 42703: column "x" does not exist at character 8, not applied>'
    )
    assert repr(SerializationFailure()) == (
        "<serialization_failure 40001: could not serialize access due to concurrent update,"
        " not applied, try again>"
    )
    assert repr(OutcomeUnknown("the server stopped")) == (
        "<transaction_resolution_unknown 08007: the server stopped, perhaps applied>"
    )


def test_fields_are_kept_and_the_message_is_the_text() -> None:
    error = UniqueViolation(
        "duplicate key", detail="Key (a)=(1) already exists.", table="t", constraint="t_pkey"
    )
    assert str(error) == "duplicate key"
    assert (error.detail, error.table, error.constraint) == (
        "Key (a)=(1) already exists.",
        "t",
        "t_pkey",
    )
    assert (error.hint, error.position, error.column) == (None, None, None)


def test_without_a_message_the_name_is_the_message() -> None:
    assert str(UniqueViolation()) == "unique violation"


def subclasses(error_class: type[QserverError]) -> Iterator[type[QserverError]]:
    yield error_class
    for each in error_class.__subclasses__():
        yield from subclasses(each)


OWN_FIELDS: dict[str, object] = {
    "allowed": ("GET", "POST"),
    "retry_after_seconds": 17,
    "location": "https://example.org",
    "version": 12,
}


def test_an_error_of_each_class_comes_back_from_its_plain_form() -> None:
    elsewhere = ("qserver.cli", "qserver.client", "tests", "simulations")  # no server raises them
    every = subclasses(QserverError)
    found = [each for each in every if not each.__module__.startswith(elsewhere)]
    assert set(found) >= set(CLASSES)
    for error_class in found:
        comes_back(error_class)


def comes_back(error_class: type[QserverError]) -> None:
    asked_for = inspect.signature(error_class).parameters
    own = {name: value for name, value in OWN_FIELDS.items() if name in asked_for}
    error = error_class.__new__(error_class)
    is_usual = "detail" in asked_for or "fields" in asked_for
    init: Any = error_class.__init__ if is_usual else QserverError.__init__
    init(error, "message ä", detail="detail", hint="hint", position=7, table="t", **own)
    error.column, error.constraint = "c", "k"
    error.statement, error.row, error.definition = 3, 4, ("CHECK (a)", 5)
    error.retryable = not error_class.retryable
    found = error_from_plain(*error_to_plain(error))
    assert type(found) is error_class
    assert (str(found), repr(found), found.args) == (str(error), repr(error), error.args)
    assert vars(found) == vars(error)


def test_what_is_not_plain_arrives_as_none() -> None:
    error = SerializationFailure(conflict=object(), table="t")
    error.add_note("a note of this process")
    found = error_from_plain(*error_to_plain(error))
    assert isinstance(found, SerializationFailure)
    assert (found.conflict, found.table, str(found)) == (None, "t", str(error))


def test_an_error_of_an_unknown_class_arrives_as_its_parent() -> None:
    classes, attributes = error_to_plain(OutcomeUnknown("lost"))
    found = error_from_plain(["elsewhere.LostAgain", *classes], attributes)
    assert type(found) is OutcomeUnknown and str(found) == "lost"
    assert type(error_from_plain(["elsewhere.LostAgain"], attributes)) is QserverError


def test_a_conflict_travels_with_the_serialization_failure() -> None:
    conflict = object()
    error = SerializationFailure(conflict=conflict, table="t")
    assert error.conflict is conflict
    assert error.table == "t"
