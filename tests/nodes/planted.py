"""Bugs that are planted in nodes before they start, to see that they are found."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Final, NamedTuple

from qserver.control.nodes.handover import Handover
from qserver.control.nodes.lease import Lease
from qserver.web.service import node


def ignore_the_lease() -> None:
    """A node answers however long ago it renewed its lease."""
    Lease.holds = lambda self: True  # type: ignore[method-assign]


def ask_nobody() -> None:
    """A node opens what the placement gives it, whoever else may have it open."""

    async def released(*_: object) -> bool:
        return True

    Handover._is_released = released  # type: ignore[method-assign,assignment]


def send_all_again() -> None:
    """A request without an answer is sent again, also one that may be applied twice."""
    node.may_be_sent_again = lambda request: True


class Bug(NamedTuple):
    plant: Callable[[], None]
    kinds: tuple[str, ...]
    """Faults that find it."""


BUGS: Final[Mapping[str, Bug]] = {
    "lease": Bug(ignore_the_lease, ("cut both",)),
    "release": Bug(ask_nobody, ("move, cut",)),
    "again": Bug(send_all_again, ("mute",)),
}
