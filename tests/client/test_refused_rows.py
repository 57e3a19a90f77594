"""Rows in bulk that a server refuses before all of them are sent."""

from __future__ import annotations

import gc
from functools import partial

import pytest
import trio

from qserver.client import TrioClient
from qserver.errors import QserverError
from tests.client.fake_server import KEY

HEAD = b"HTTP/1.1 400 Bad Request\r\nContent-Length: %d\r\nConnection: close\r\n\r\n"
BODY = b'{"success": false, "error": {"code": "22P02", "message": "no number"}}'


@pytest.mark.half
async def test_what_was_not_sent_is_not_left_to_the_collector() -> None:
    async def refuse(connected: trio.SocketStream) -> None:
        async with connected:
            await connected.receive_some(1000)
            await connected.send_all(HEAD % len(BODY) + BODY)

    async with trio.open_nursery() as nursery:
        serve = partial(trio.serve_tcp, refuse, 0, host="127.0.0.1")
        (listener,) = await nursery.start(serve)
        url = f"http://127.0.0.1:{listener.socket.getsockname()[1]}"
        async with TrioClient(url, KEY) as client:
            for _ in range(3):
                with pytest.raises(QserverError):
                    await client.insert_rows("t", (("x" * 100,) for _ in range(100_000)), ["id"])
        nursery.cancel_scope.cancel()
    gc.collect()
