"""Refuses log nodes that acknowledge a message before it is on their disks.

By default such a node syncs every two minutes, and a power failure takes what it had acknowledged.
So each node is asked how it is set up, all by one question to the nodes' system account, which the
configuration of `qserver log-config` lets us ask. A node cannot change this while it runs; one that
was restarted answers the next question.

    a node says that it does not sync        refused, until all that answer say that they do
    none may be asked                        refused
    a majority says that it syncs            accepted
    fewer answer                             as it was: who is silent acknowledges nothing
"""

from __future__ import annotations

from typing import Final

import msgspec

from qserver.errors import LogFailed
from qserver.replication.nats.connection import Connection
from qserver.replication.nats.protocol import Delivery
from qserver.replication.port import Unanswered

ANSWERS_SECONDS_MAX: Final = 1.0
"""How long answers of all nodes are waited for."""

_SUBJECT: Final = "$SYS.REQ.SERVER.PING.JSZ"
_HINT: Final = (
    "Write the node's configuration with `qserver log-config`, which says `sync_interval: always`, "
    "and restart it."
)


class _Server(msgspec.Struct, frozen=True):
    name: str = ""


class _Settings(msgspec.Struct, frozen=True):
    sync_always: bool = False
    """There only if it is so; `sync_interval` beside it says two minutes in any case."""


class _Nodes(msgspec.Struct, frozen=True):
    cluster_size: int = 1


class _State(msgspec.Struct, frozen=True):
    config: _Settings | None = None
    disabled: bool = False
    """Keeps no streams."""
    meta_cluster: _Nodes | None = None
    """Missing in a node that is alone."""


class _Answer(msgspec.Struct, frozen=True):
    server: _Server
    data: _State | None = None
    error: object = None


class SyncedNodes:
    """What the nodes said last: `refuse` raises LogFailed unless all sync."""

    def __init__(self, connection: Connection, copies: int) -> None:
        self._connection = connection
        self._copies = copies
        """How many nodes there are at least; while they start they may not know of each other."""
        self._trouble: str | None = "it is not known yet whether log nodes sync"

    def refuse(self) -> None:
        if self._trouble is not None:
            raise LogFailed(self._trouble, hint=_HINT)

    async def check(self) -> None:
        """Ask all nodes. Raise Unanswered if too few answer to know."""
        answers: dict[str, _Answer] = {}

        def is_last(reply: Delivery) -> bool:
            if reply.status:
                return True
            answer = _decoded(reply)
            answers[answer.server.name] = answer
            return len(_keepers(answers)) >= self._size(answers)

        replies = await self._connection.ask(
            _SUBJECT, b'{"config":true}', ANSWERS_SECONDS_MAX, is_last=is_last
        )
        if replies[-1].status:
            where = self._connection.server
            self._trouble = f"the log node {where} does not say whether log nodes sync"
            return
        keepers = _keepers(answers)
        for name, answer in keepers.items():
            if answer.data is None or answer.data.config is None:
                self._trouble = f"the log node {name} does not say whether it syncs"
                return
            if not answer.data.config.sync_always:
                self._trouble = f"the log node {name} acknowledges messages before they are synced"
                return
        if len(keepers) <= self._size(answers) // 2:
            raise Unanswered(f"{len(keepers)} of {self._size(answers)} log nodes answer")
        self._trouble = None

    def _size(self, answers: dict[str, _Answer]) -> int:
        states = [each.data for each in answers.values() if each.data is not None]
        sizes = [each.meta_cluster.cluster_size for each in states if each.meta_cluster]
        return max([self._copies, *sizes])


def _decoded(reply: Delivery) -> _Answer:
    try:
        return msgspec.json.decode(reply.payload, type=_Answer)
    except msgspec.MsgspecError:
        return _Answer(_Server("without a name"))


def _keepers(answers: dict[str, _Answer]) -> dict[str, _Answer]:
    return {
        name: answer
        for name, answer in answers.items()
        if answer.data is None or not answer.data.disabled
    }
