"""Compresses answers for clients that ask for it (RFC 9110, 12.5.3).

    Accept-Encoding ─► negotiate ─► Compression ─┬─ a short body: at once
                       (once per head)           └─ a long body, or parts: while they are sent

gzip is always there, zstd where the package `zstandard` is installed. The lowest level is right for
both: on rows as JSON, level 6 takes three times the CPU for a fifth less.

    1 MB of rows      level 1             level 3             level 6
    gzip              3-11 ms, 3.0-16:1   4-17 ms, 3.0-17:1   10-33 ms, 3.3-20:1
    zstd              1-4 ms, 4.2-21:1    2-8 ms, 3.5-20:1    8-18 ms, 3.6-21:1

Every part is flushed: what the server has sent, the client can decode. So a stream of JSON lines
keeps its pace. Events are sent as they are, because proxies and readers of events often wait for
more of a compressed body, and large results are better read as lines.

Who can read the length of an encrypted answer, and put a text of his choice into it, can guess a
secret beside that text. So answers of the control plane, which contain keys and sessions, are never
compressed.
"""

from __future__ import annotations

import re
import zlib
from collections.abc import AsyncGenerator, AsyncIterable, Iterable
from dataclasses import dataclass
from importlib.util import find_spec
from typing import Final, Protocol

from qserver.engine.yielding import yield_to_others
from qserver.errors import OutOfMemory
from qserver.http1 import Parts
from qserver.limits import ANSWER_PART_BYTES, COMPRESSED_AT_ONCE_BYTES, COMPRESSED_BYTES_MIN
from qserver.query.memory_pool import MemoryPool
from qserver.web.streaming.parts import AnswerParts

HAS_ZSTD: Final = find_spec("zstandard") is not None
"""The extra `zstd` is installed."""

if HAS_ZSTD:
    import zstandard

LEVEL: Final = 1
GZIP_FRAME: Final = 16 + zlib.MAX_WBITS
_WEIGHT: Final = re.compile(rb"(?:0(?:\.[0-9]{0,3})?|1(?:\.0{0,3})?)")


class Compressor(Protocol):
    def compress(self, data: bytes | memoryview) -> bytes: ...

    def flush(self) -> bytes:
        """What is needed to decode all that was compressed so far."""

    def end(self) -> bytes: ...


class GzipCompressor:
    def __init__(self) -> None:
        self._stream = zlib.compressobj(LEVEL, zlib.DEFLATED, GZIP_FRAME)
        self.compress = self._stream.compress

    def flush(self) -> bytes:
        return self._stream.flush(zlib.Z_SYNC_FLUSH)

    def end(self) -> bytes:
        return self._stream.flush()


class ZstdCompressor:
    def __init__(self) -> None:
        self._stream = zstandard.ZstdCompressor(level=LEVEL).compressobj()
        self.compress = self._stream.compress

    def flush(self) -> bytes:
        return self._stream.flush(zstandard.COMPRESSOBJ_FLUSH_BLOCK)

    def end(self) -> bytes:
        return self._stream.flush()


@dataclass(frozen=True, slots=True)
class Coding:
    """A content coding; `memory_bytes` is what one compressor holds."""

    name: bytes
    compressor: type[GzipCompressor] | type[ZstdCompressor]
    memory_bytes: int

    def compressed(self, body: bytes) -> bytes:
        compressor = self.compressor()
        return compressor.compress(body) + compressor.end()


GZIP: Final = Coding(b"gzip", GzipCompressor, 272 * 1024)
ZSTD: Final = Coding(b"zstd", ZstdCompressor, 600 * 1024)
CODINGS: Final = (ZSTD, GZIP) if HAS_ZSTD else (GZIP,)
"""What the server can do; of two that a client likes as much, the first."""


@dataclass(frozen=True, slots=True)
class Compression:
    """How the answers to one head are compressed."""

    coding: Coding
    required: bool
    """The client refuses an answer that is not compressed, however short."""

    @property
    def bytes_min(self) -> int:
        """A body of more bytes than that is compressed."""
        return 0 if self.required else COMPRESSED_BYTES_MIN


def negotiate(accepted: Iterable[bytes]) -> Compression | None:
    """Choose by the values of all Accept-Encoding headers; None: the body is sent as it is.

    A client that accepts nothing that the server has gets the body as it is too.
    """
    weights = _weights(accepted)
    other = weights.get(b"*", 0.0)
    best = max(CODINGS, key=lambda coding: weights.get(coding.name, other))
    weight = weights.get(best.name, other)
    plain = weights.get(b"identity", other if b"*" in weights else None)
    if weight == 0.0 or (plain is not None and plain > weight):
        return None
    return Compression(best, required=plain == 0.0)


def accepts_gzip(accepted: Iterable[bytes]) -> bool:
    """Whether a file that is kept compressed with gzip may be sent as it is kept."""
    weights = _weights(accepted)
    return weights.get(GZIP.name, weights.get(b"*", 0.0)) > 0.0


def _weights(accepted: Iterable[bytes]) -> dict[bytes, float]:
    """The weight of each coding; one with a malformed weight is left out."""
    weights: dict[bytes, float] = {}
    for element in b",".join(accepted).split(b","):
        name, *parameters = element.split(b";")
        weight = b"1"
        for parameter in parameters:
            key, _, value = parameter.partition(b"=")
            weight = value.strip() if key.strip().lower() == b"q" else b""
        name = name.strip().lower()
        if name and _WEIGHT.fullmatch(weight) is not None:
            weights[b"gzip" if name == b"x-gzip" else name] = float(weight)
    return weights


def compressed_parts(body: bytes | Parts, coding: Coding, pool: MemoryPool) -> Parts | None:
    """A body that is compressed while it is sent; None if the pool has no memory for that."""
    try:
        pool.take(coding.memory_bytes)
    except OutOfMemory:
        return None
    source = _once(body) if isinstance(body, bytes) else body

    async def ended() -> None:
        pool.give_back(coding.memory_bytes)
        await source.aclose()

    return AnswerParts(_compress(source, coding.compressor()), ended)


async def _once(body: bytes) -> AsyncGenerator[bytes, None]:
    yield body


async def _compress(
    source: AsyncIterable[bytes], compressor: Compressor
) -> AsyncGenerator[bytes, None]:
    """Compress each part in pieces, each in turn with other long work."""
    async for part in source:
        if not part:
            continue
        out, size, rest = [], 0, memoryview(part)
        while rest:
            out.append(compressor.compress(rest[:COMPRESSED_AT_ONCE_BYTES]))
            size, rest = size + len(out[-1]), rest[COMPRESSED_AT_ONCE_BYTES:]
            if rest:
                await yield_to_others()
            if size > ANSWER_PART_BYTES:
                yield b"".join(out)
                out, size = [], 0
        out.append(compressor.flush())
        yield b"".join(out)
    yield compressor.end()
