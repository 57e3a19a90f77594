"""How the coordinator reaches the shards and the log writer."""

from __future__ import annotations

from collections.abc import Callable
from typing import Protocol

import msgspec

from qserver.engine.mailbox import Mailbox
from qserver.engine.messages import Append, FromShard, ToShard
from qserver.values.steps import Steps


class ShardPort(msgspec.Struct, frozen=True):
    """How to reach a shard: by its mailbox, or directly if it has little to do."""

    mailbox: Mailbox[ToShard]
    is_long: Callable[[ToShard], bool]
    answer: Callable[[ToShard], Steps[FromShard]]


class LogPort(Protocol):
    """How to reach the log writer."""

    @property
    def is_free(self) -> bool:
        """Whether no round waits to be written."""

    def submit(self, append: Append) -> None:
        """Have the round written; raise TooManyRequests if too many wait already."""

    async def wait_to_submit(self, append: Append) -> None:
        """Do the same once there is room."""
