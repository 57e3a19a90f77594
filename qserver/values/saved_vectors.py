"""Vectors as bytes, each in as few as its kind allows, and read back without a loop over its rows.

    integers, codes of words    what exceeds the lowest, in 0, 1, 2, 4, 8, 16, 32 or 64 bits
    floats                      32 bits each if that is exact, otherwise 64
    booleans, NULLs             a bit each
    texts as they are           all in one, and their lengths

Wide numbers and texts are compressed where that pays: texts that do not compress to a half are not
saved at all, because the rows have them already. A vector comes back equal, in the same array type.
"""

from __future__ import annotations

from itertools import accumulate, pairwise
from typing import Any, Final
from zlib import compress, decompress, error

import msgspec
import numpy as np

from qserver.values import vector_families as families
from qserver.values.vector_families import ColumnVector
from qserver.values.vectors import Array, Vector, smallest_integer_type

BITS: Final = (0, 1, 2, 4, 8, 16, 32, 64)
COMPRESSED_BITS: Final = 32
"""Numbers of fewer bits are not compressed: that would save little, and loading takes longer."""
LEVEL: Final = 1
SAMPLE_BYTES: Final = 1024
TEXTS_SHARE: Final = 0.5
NUMBERS_SHARE: Final = 0.7
"""Compressed bytes are kept if they are no more than such a share."""


class Packed(msgspec.Struct, frozen=True, array_like=True):
    """Integers of which none is negative."""

    bits: int
    data: bytes
    is_compressed: bool = False


class SavedVector(msgspec.Struct, frozen=True, array_like=True):
    low: float | int | bool
    high: float | int | bool
    numbers: Packed
    nulls: bytes = b""
    words: list[str] | None = None
    texts: bytes = b""
    """Compressed."""


def encode_vector(vector: Vector, wanted: ColumnVector) -> bytes | None:
    """Return a vector as bytes; None if they would be too many."""
    saved = _saved_texts(vector) if wanted.family == families.TEXTS else _saved(vector, wanted)
    return None if saved is None else _encode(saved)


def decode_vector(data: bytes, wanted: ColumnVector, length: int) -> Vector:
    """Return the vector; raise ValueError if the bytes are not those of one."""
    try:
        saved = _decode(data)
        nulls = _unpacked_bits(saved.nulls, length) if saved.nulls else None
        if wanted.family == families.TEXTS:
            return Vector(_texts(saved, length), nulls)
        low: Any = saved.low
        high: Any = saved.high
        if wanted.family == families.FLOAT:
            return Vector(_floats(saved.numbers, length), nulls, low, high)
        if wanted.family == families.BOOLEAN:
            return Vector(_unpacked_bits(saved.numbers.data, length), nulls, low, high)
        kind: Any = np.uint8 if saved.words is not None else smallest_integer_type(low, high)
        values = _unpacked(saved.numbers, length).astype(kind)
        values += kind(low)
        return Vector(values, nulls, low, high, wanted.scale, saved.words)
    except (msgspec.MsgspecError, error, ArithmeticError, TypeError) as cause:
        raise ValueError(str(cause)) from cause


def _saved(vector: Vector, wanted: ColumnVector) -> SavedVector | None:
    values, nulls = vector.values, _nulls(vector)
    if wanted.family == families.FLOAT:
        numbers = _packed_floats(values)
    elif wanted.family == families.BOOLEAN:
        numbers = Packed(1, np.packbits(values).tobytes())
    elif vector.words is not None and values.dtype != np.uint8:
        return None
    else:
        above = values.astype(np.int64).view(np.uint64) - np.uint64(vector.low & (2**64 - 1))
        numbers = _packed(above, int(vector.high) - int(vector.low))
    return SavedVector(vector.low, vector.high, numbers, nulls, vector.words)


def _nulls(vector: Vector) -> bytes:
    return b"" if vector.nulls is None else np.packbits(vector.nulls).tobytes()


# --- numbers -------------------------------------------------------------------------------------


def _packed(values: Array, highest: int) -> Packed:
    """Pack integers of 64 bits without a sign."""
    bits = next(bits for bits in BITS if highest < 1 << bits)
    if not bits:
        return Packed(0, b"")
    if bits >= 8:
        data = values.astype(f"<u{bits // 8}").tobytes()
        return _compressed(bits, data) if bits >= COMPRESSED_BITS else Packed(bits, data)
    small = values.astype(np.uint8)
    each = 8 // bits
    whole = np.zeros(-(-len(small) // each) * each, np.uint8)
    whole[: len(small)] = small
    places = whole.reshape(-1, each) << np.arange(0, 8, bits, dtype=np.uint8)
    return Packed(bits, np.bitwise_or.reduce(places, axis=1).tobytes())


def _unpacked(packed: Packed, length: int) -> Array:
    bits = packed.bits
    if not bits:
        return np.zeros(length, np.uint8)
    data = decompress(packed.data) if packed.is_compressed else packed.data
    if bits >= 8:
        values = np.frombuffer(data, f"<u{bits // 8}")
        if len(values) != length:
            raise ValueError("not as many numbers as rows")
        return values
    each = 8 // bits
    small = np.frombuffer(data, np.uint8)
    if len(small) != -(-length // each):
        raise ValueError("not as many numbers as rows")
    values = np.empty((len(small), each), np.uint8)
    for at in range(each):
        values[:, at] = small >> at * bits
    values &= (1 << bits) - 1
    return values.reshape(-1)[:length]


def _packed_floats(values: Array) -> Packed:
    with np.errstate(over="ignore"):
        short = values.astype("<f4")
    is_exact = bool((short == values).all())
    data = short.tobytes() if is_exact else values.astype("<f8").tobytes()
    return _compressed(32 if is_exact else 64, data)


def _compressed(bits: int, data: bytes) -> Packed:
    """Compress numbers where that pays, by a sample of them."""
    sample = data[:SAMPLE_BYTES]
    if len(compress(sample, LEVEL)) > NUMBERS_SHARE * len(sample):
        return Packed(bits, data)
    return Packed(bits, compress(data, LEVEL), True)


def _floats(packed: Packed, length: int) -> Array:
    data = decompress(packed.data) if packed.is_compressed else packed.data
    values = np.frombuffer(data, f"<f{packed.bits // 8}")
    if len(values) != length:
        raise ValueError("not as many numbers as rows")
    return values.astype(np.float64)


def _unpacked_bits(data: bytes, length: int) -> Array:
    return np.unpackbits(np.frombuffer(data, np.uint8), count=length).view(np.bool_)


# --- texts ---------------------------------------------------------------------------------------


def _saved_texts(vector: Vector) -> SavedVector | None:
    texts = vector.values.tolist()
    whole = "".join(texts).encode()
    fewer = compress(whole, LEVEL)
    lengths = np.fromiter(map(len, texts), np.uint64, len(texts))
    if len(fewer) > TEXTS_SHARE * (len(whole) + len(texts)):
        return None
    return SavedVector(0, 0, _packed(lengths, int(lengths.max())), _nulls(vector), None, fewer)


def _texts(saved: SavedVector, length: int) -> Array:
    whole = decompress(saved.texts).decode()
    ends = accumulate(_unpacked(saved.numbers, length).tolist(), initial=0)
    values = np.empty(length, np.object_)
    values[:] = [whole[start:end] for start, end in pairwise(ends)]
    return values


_encode = msgspec.msgpack.Encoder().encode
_decode = msgspec.msgpack.Decoder(SavedVector).decode
