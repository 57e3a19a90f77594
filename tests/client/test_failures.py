"""Every error of the server comes back as its own class, with all of its fields."""

from __future__ import annotations

import pytest

from qserver import errors
from qserver.client.failures import error_from
from qserver.errors import QserverError, RateLimited, SerializationFailure, UniqueViolation

CLASSES = [
    each
    for each in vars(errors).values()
    if isinstance(each, type) and issubclass(each, QserverError)
]


@pytest.mark.parametrize("error_class", CLASSES, ids=lambda each: each.__name__)
def test_a_code_finds_its_class(error_class: type[QserverError]) -> None:
    fields = {"code": error_class.code, "name": error_class.name, "message": "so it is"}
    found = error_from(fields)
    assert type(found) is error_class
    assert found.message == str(found) == "so it is"


def test_all_fields_are_kept() -> None:
    found = error_from(
        {
            "code": "23505",
            "name": "unique_violation",
            "message": "duplicate key",
            "detail": "Key (id)=(1) already exists.",
            "hint": None,
            "position": 7,
            "statement": 2,
            "table": "users",
            "column": "id",
            "constraint": "users_pkey",
            "retryable": False,
            "request_id": "abc",
        },
        status=200,
    )
    assert isinstance(found, UniqueViolation)
    assert (found.detail, found.hint, found.position) == ("Key (id)=(1) already exists.", None, 7)
    assert (found.table, found.column, found.constraint) == ("users", "id", "users_pkey")
    assert found.statement == 2
    assert vars(found)["request_id"] == "abc"
    assert "not applied" in repr(found)


def test_a_code_of_a_newer_server_is_still_an_error_with_that_code() -> None:
    found = error_from({"code": "QS999", "name": "moon_phase", "message": "no", "retryable": True})
    assert (found.code, found.name, found.retryable, found.message) == (
        "QS999",
        "moon_phase",
        True,
        "no",
    )


def test_what_a_class_has_beyond_the_others_is_there() -> None:
    limited = error_from({"code": "QS012", "message": "slow down"}, 429, "17")
    assert isinstance(limited, RateLimited)
    assert limited.retry_after_seconds == 17
    conflict = error_from({"code": "40001", "message": "", "conflict": {"table": "t"}})
    assert isinstance(conflict, SerializationFailure)
    assert conflict.conflict == {"table": "t"}


def test_the_server_decides_whether_the_same_request_may_succeed() -> None:
    """A table that changed since `if_version` has changed for good."""
    fields = {"code": "40001", "name": "serialization_failure", "message": "t has changed"}
    assert error_from(fields).retryable is True
    refused = error_from({**fields, "retryable": False})
    assert isinstance(refused, SerializationFailure)
    assert refused.retryable is False
    assert "try again" not in repr(refused)
