"""pg_notify and what one can know of channels; LISTEN and NOTIFY are statements."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Final

from qserver.functions.registry import Function, TableFunction
from qserver.values.types import DOUBLE, TEXT, VOID

if TYPE_CHECKING:
    from qserver.functions.context import Context


def notify(context: Context, channel: str | None, payload: str | None) -> str:
    context.notify(channel or "", payload or "")
    return ""  # as PostgreSQL shows void


def listening_channels(context: Context) -> Iterator[tuple[str]]:
    return ((name,) for name in sorted(context.listening()))


def queue_usage(context: Context) -> float:
    return context.notification_usage()


FUNCTIONS: Final = (
    Function(
        "pg_notify",
        (TEXT, TEXT),
        VOID,
        notify,
        strict=False,
        volatile=True,
        needs_context=True,
        writes=True,
    ),
    Function(
        "pg_notification_queue_usage", (), DOUBLE, queue_usage, volatile=True, needs_context=True
    ),
)
TABLE_FUNCTIONS: Final = (
    TableFunction(
        "pg_listening_channels",
        (),
        (("pg_listening_channels", TEXT),),
        listening_channels,
        needs_context=True,
    ),
)
