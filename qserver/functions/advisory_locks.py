"""pg_advisory_lock and its kin: of a session or a transaction, shared or not, waiting or not.

A key is a bigint, or two integers; these are other keys than any bigint.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Any, Final

from qserver.functions.registry import Function
from qserver.values.notices import Notice
from qserver.values.types import BIGINT, BOOLEAN, INTEGER, VOID, SqlType

if TYPE_CHECKING:
    from qserver.functions.context import Context

_KEYS: Final[tuple[tuple[SqlType, ...], ...]] = ((BIGINT,), (INTEGER, INTEGER))


def _key(numbers: tuple[int, ...]) -> int | tuple[int, ...]:
    return numbers[0] if len(numbers) == 1 else numbers


def _locking(*, shared: bool, of_transaction: bool, waits: bool) -> Callable[..., Any]:
    def call(context: Context, *numbers: int) -> bool | str:
        key = _key(numbers)
        found = context.lock(key, shared=shared, of_transaction=of_transaction, waits=waits)
        return "" if waits else found  # PostgreSQL shows void so

    return call


def _unlocking(*, shared: bool) -> Callable[..., bool]:
    lock = "ShareLock" if shared else "ExclusiveLock"
    not_owned = Notice("WARNING", "01000", f"you don't own a lock of type {lock}")

    def call(context: Context, *numbers: int) -> bool:
        found = context.unlock(_key(numbers), shared=shared)
        if not found:
            context.give_notice(not_owned)
        return found

    return call


def _unlock_all(context: Context) -> str:
    context.unlock_all()
    return ""


def _functions() -> Iterator[Function]:
    for parameters in _KEYS:
        for shared in (False, True):
            end = "_shared" if shared else ""
            for of_transaction in (False, True):
                scope = "xact_" if of_transaction else ""
                for waits in (True, False):
                    yield Function(
                        f"pg_{'' if waits else 'try_'}advisory_{scope}lock{end}",
                        parameters,
                        VOID if waits else BOOLEAN,
                        _locking(shared=shared, of_transaction=of_transaction, waits=waits),
                        volatile=True,
                        needs_context=True,
                        writes=True,
                    )
            yield Function(
                f"pg_advisory_unlock{end}",
                parameters,
                BOOLEAN,
                _unlocking(shared=shared),
                volatile=True,
                needs_context=True,
            )
    yield Function(
        "pg_advisory_unlock_all", (), VOID, _unlock_all, volatile=True, needs_context=True
    )


FUNCTIONS: Final = tuple(_functions())
