"""Errors and notices, as PostgreSQL's clients want them.

Our own codes (QS…) become PostgreSQL's nearest ones, because drivers choose their exceptions by the
class of a code; the code itself stays in the detail.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Final, Literal

from qserver.errors import QserverError
from qserver.pgwire.messages import fields
from qserver.values.notices import Notice

Severity = Literal["ERROR", "FATAL", "WARNING", "NOTICE"]

NEAREST: Final[Mapping[str, str]] = {
    "QS001": "22023",  # invalid_parameter_value
    "QS002": "28000",  # invalid_authorization_specification
    "QS003": "54000",  # program_limit_exceeded
    "QS005": "42501",  # insufficient_privilege
    "QS006": "3D000",  # invalid_catalog_name
    "QS009": "54000",
    "QS012": "53400",  # configuration_limit_exceeded
    "QS021": "57P01",  # admin_shutdown: connect again
    "QS022": "58030",  # io_error
    "QS023": "57P03",  # cannot_connect_now
    "QS030": "25000",  # invalid_transaction_state
    "QS031": "54000",
    "QS034": "53400",
}
OTHERS: Final = "XX000"


def code_of(error: QserverError) -> str:
    code = error.code
    return NEAREST.get(code, OTHERS) if code.startswith("QS") else code


def problem(error: QserverError, severity: Severity = "ERROR", where: str | None = None) -> bytes:
    """Return the message for an error; a notice for a warning."""
    kind = b"E" if severity in ("ERROR", "FATAL") else b"N"
    return fields(kind, _fields(error, severity, where))


def notice(what: Notice) -> bytes:
    return fields(b"N", _fields_of_notice(what))


def _fields_of_notice(what: Notice) -> Iterator[tuple[str, str]]:
    yield "S", what.severity
    yield "V", what.severity
    yield "C", what.code
    yield "M", _clean(what.text)
    if what.detail is not None:
        yield "D", _clean(what.detail)


def _fields(
    error: QserverError, severity: Severity, where: str | None
) -> Iterator[tuple[str, str]]:
    yield "S", severity
    yield "V", severity
    yield "C", code_of(error)
    yield "M", _clean(error.message)
    detail = error.detail
    if error.code.startswith("QS"):
        own = f"qserver calls this {error.name} ({error.code})."
        detail = own if detail is None else f"{detail} {own}"
    for code, text in (
        ("D", detail),
        ("H", error.hint),
        ("W", where),
        ("t", error.table),
        ("c", error.column),
        ("n", error.constraint),
    ):
        if text is not None:
            yield code, _clean(text)
    if error.table is not None:
        yield "s", "public"
    if error.position is not None:
        yield "P", str(error.position)


def _clean(text: str) -> str:
    """Return what can be sent: no NUL, no lone surrogate."""
    return text.replace("\0", "?").encode("utf-8", "replace").decode()
