"""How a coding is chosen, and that compressing neither blocks nor holds more than it may."""

from __future__ import annotations

import gzip
from collections.abc import AsyncGenerator
from random import Random

import httpx
import pytest
import trio

from qserver.config import load
from qserver.limits import ANSWER_PART_BYTES, COMPRESSED_AT_ONCE_BYTES, COMPRESSED_BYTES_MIN
from qserver.query.memory_pool import MemoryPool
from qserver.web import compression
from qserver.web.compression import CODINGS, GZIP, ZSTD, Coding, compressed_parts, negotiate
from qserver.web.service.create import create_application
from qserver.web.streaming.parts import AnswerParts
from tests.web.test_app import KEY, new_app, running

LONG = {"sql": "select repeat('abc', 30000) as text"}


def chosen(*accepted: bytes) -> tuple[Coding, bool] | None:
    found = negotiate(accepted)
    return None if found is None else (found.coding, found.required)


def test_both_codings_are_there_with_the_package() -> None:
    assert CODINGS == (ZSTD, GZIP)


@pytest.mark.parametrize(
    ("accepted", "expected"),
    [
        ((), None),
        ((b"",), None),
        ((b" , ;q=1, ",), None),
        ((b"gzip",), (GZIP, False)),
        ((b"gzip, zstd",), (ZSTD, False)),
        ((b"gzip", b"zstd;q=0.5"), (GZIP, False)),
        ((b"zstd;q=0.001, gzip;q=0.01",), (GZIP, False)),
        ((b"gzip;q=0.000",), None),
        ((b"gzip;q=1.001",), None),
        ((b"gzip;q=-1",), None),
        ((b"gzip;q=",), None),
        ((b"gzip;q=nan",), None),
        ((b"gzip;level=9",), None),
        ((b"gzip;q=0.0001",), None),
        ((b"gzip\t;\tq=0.3",), (GZIP, False)),
        ((b"gzip;q=0.3, identity;q=0.2",), (GZIP, False)),
        ((b"gzip;q=0.3, identity;q=0.4",), None),
        ((b"gzip;q=0.3, *;q=0.4",), (ZSTD, False)),
        ((b"*;q=0.4, gzip;q=0, zstd;q=0",), None),
        ((b"identity;q=0",), None),
        ((b"*;q=0, br",), None),
        ((b"identity;q=0, gzip",), (GZIP, True)),
        ((b"*;q=0, gzip",), (GZIP, True)),
        ((b"*;q=0, gzip, identity;q=0.1",), (GZIP, False)),
        ((b"*, identity;q=0",), (ZSTD, True)),
        ((b"\xff\x00, gzip",), (GZIP, False)),
    ],
)
def test_a_coding_is_chosen_by_weight(
    accepted: tuple[bytes, ...], expected: tuple[Coding, bool] | None
) -> None:
    assert chosen(*accepted) == expected


def test_without_the_package_there_is_gzip(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(compression, "CODINGS", (GZIP,))
    assert chosen(b"gzip, zstd") == (GZIP, False)
    assert chosen(b"zstd") is None
    assert chosen(b"*") == (GZIP, False)


def test_a_body_is_compressed_past_a_length_or_always() -> None:
    some, always = negotiate([b"gzip"]), negotiate([b"gzip, identity;q=0"])
    assert some is not None and some.bytes_min == COMPRESSED_BYTES_MIN
    assert always is not None and always.bytes_min == 0


async def test_others_run_while_a_long_body_is_compressed() -> None:
    body = bytes(range(256)) * 16 * 1024
    turns = 0

    async def count_turns() -> None:
        nonlocal turns
        while True:
            await trio.lowlevel.checkpoint()
            turns += 1

    parts = compressed_parts(body, GZIP, MemoryPool())
    assert parts is not None
    async with trio.open_nursery() as nursery:
        nursery.start_soon(count_turns)
        compressed = [part async for part in parts]
        nursery.cancel_scope.cancel()
    await parts.aclose()
    assert turns > len(body) // COMPRESSED_AT_ONCE_BYTES // 2
    assert gzip.decompress(b"".join(compressed)) == body


async def test_what_cannot_be_compressed_is_passed_on_in_parts_of_limited_size() -> None:
    body = Random(1).randbytes(5 * ANSWER_PART_BYTES)
    parts = compressed_parts(body, GZIP, MemoryPool())
    assert parts is not None
    compressed = [part async for part in parts]
    await parts.aclose()
    assert len(compressed) >= 5
    assert max(map(len, compressed)) < 2 * ANSWER_PART_BYTES
    assert gzip.decompress(b"".join(compressed)) == body


@pytest.mark.parametrize("coding", CODINGS, ids=lambda coding: coding.name.decode())
async def test_compressors_are_counted_until_their_answer_ends(coding: Coding) -> None:
    pool, ends = MemoryPool(2 * coding.memory_bytes - 1), []

    async def source() -> AsyncGenerator[bytes, None]:
        yield b"abc"
        yield b""
        yield b"def"

    async def ended() -> None:
        ends.append(True)

    parts = compressed_parts(AnswerParts(source(), ended), coding, pool)
    assert parts is not None and pool.held == coding.memory_bytes
    assert compressed_parts(b"x", coding, pool) is None, "there is no memory for a second one"
    async for part in parts:
        assert part, "nothing is sent for an empty part"
        break
    await parts.aclose()
    assert pool.held == 0 and ends == [True]


async def test_an_answer_is_sent_as_it_is_if_memory_is_short() -> None:
    app = new_app()
    async with running(app) as client:
        pool = app.service.memory
        answer = await client.post("/v1/query", json=LONG, headers={"Accept-Encoding": "gzip"})
        assert answer.headers["content-encoding"] == "gzip"
        assert pool.held == 0
        pool.most = GZIP.memory_bytes - 1
        plain = await client.post("/v1/query", json=LONG, headers={"Accept-Encoding": "gzip"})
        assert "content-encoding" not in plain.headers
        assert plain.json()["rows"] == answer.json()["rows"]


async def test_the_setting_turns_it_off() -> None:
    variables = {"QSERVER_DATA_DIR": ":memory:", "QSERVER_API_KEY": KEY, "QSERVER_SHARDS": "1"}
    app = create_application(load({**variables, "QSERVER_COMPRESSION": "0"}), lambda key: None)
    async with running(app) as client:
        headers = {"Accept-Encoding": "gzip, identity;q=0"}
        answer: httpx.Response = await client.post("/v1/query", json=LONG, headers=headers)
        assert "content-encoding" not in answer.headers and "vary" not in answer.headers
        assert answer.json()["rows"] == [{"text": 30_000 * "abc"}]
