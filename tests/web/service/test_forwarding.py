"""What a client is told of a forwarded request that its process did not answer."""

from __future__ import annotations

import json
from typing import Any

import pytest

from qserver.errors import DatabaseUnavailable, OutcomeUnknown, QserverError
from qserver.http1 import ClientGone
from qserver.web.service.processes import Mover

REQUEST = b"GET / HTTP/1.1\r\nHost: a\r\nX-Request-Id: mine-7\r\n\r\n"


class FailingLinks:
    def __init__(self, error: QserverError) -> None:
        self.error = error

    async def call(self, *_: Any, **__: Any) -> Any:
        raise self.error


def mover(error: QserverError) -> Any:
    made: Any = Mover.__new__(Mover)
    made._links = FailingLinks(error)
    return made


async def test_nothing_was_done_by_a_process_that_is_away() -> None:
    answer = await mover(DatabaseUnavailable("away")).forward(1, REQUEST, None)
    told = json.loads(answer.body)["error"]
    assert answer.status == 503 and told["code"] == "QS023" and told["retryable"] is True
    assert answer.request_id == told["request_id"] == "mine-7"
    assert (b"retry-after", b"1") in answer.headers.pairs


async def test_nobody_is_told_what_became_of_a_request_whose_process_died() -> None:
    with pytest.raises(ClientGone):
        await mover(OutcomeUnknown("lost")).forward(1, REQUEST, None)
