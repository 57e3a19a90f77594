"""Functions of BYTEA: substrings, bits, hashes, and text formats (hex, base64, escape)."""

from __future__ import annotations

import hashlib
import hmac
import re
from base64 import b64decode, b64encode
from collections.abc import Callable, Iterator
from typing import Any, Final

from qserver.errors import (
    ArraySubscriptError,
    CharacterNotInRepertoire,
    InvalidParameterValue,
    UntranslatableCharacter,
)
from qserver.functions.aggregates.basic import joinable
from qserver.functions.costs import bytea_cost, linear
from qserver.functions.registry import Aggregate, Function
from qserver.functions.text.strings import overlay, overlay_for, substring, substring_for
from qserver.values.binary_text import bytes_from_escapes, bytes_from_hex
from qserver.values.types import BIGINT, BYTEA, INTEGER, TEXT

_LINE: Final = 76
"""Characters in a line of base64."""

_BLANKS: Final = " \t\n\r"
_NO_SYMBOL: Final = re.compile(r"[^A-Za-z0-9+/=]")
_NEEDS_ESCAPE: Final = re.compile(rb"[\x00\x80-\xff\\]")
_ENCODINGS: Final = {
    "utf8": "utf-8",
    "utf-8": "utf-8",
    "unicode": "utf-8",
    "latin1": "latin-1",
    "iso88591": "latin-1",
    "sqlascii": "utf-8",
    "win1252": "cp1252",
}


# --- bytes as text -------------------------------------------------------------------------------


def encode(value: bytes, form: str) -> str:
    write = _WRITERS.get(form.lower())
    if write is None:
        raise InvalidParameterValue(f'unrecognized encoding: "{form}"')
    return write(value)


def decode(text: str, form: str) -> bytes:
    read = _READERS.get(form.lower())
    if read is None:
        raise InvalidParameterValue(f'unrecognized encoding: "{form}"')
    return read(text)


def _to_base64(value: bytes) -> str:
    text = b64encode(value).decode()
    return "\n".join(text[at : at + _LINE] for at in range(0, len(text), _LINE))


def _from_base64(text: str) -> bytes:
    symbols = text
    for blank in _BLANKS:
        symbols = symbols.replace(blank, "")
    wrong, first = _NO_SYMBOL.search(symbols), symbols.find("=")
    if first % 4 < 2 and 0 <= first < (len(symbols) if wrong is None else wrong.start()):
        raise InvalidParameterValue('unexpected "=" while decoding base64 sequence')
    if wrong is not None:
        raise InvalidParameterValue(
            f'invalid symbol "{wrong[0]}" found while decoding base64 sequence'
        )
    if len(symbols) % 4:
        raise InvalidParameterValue(
            "invalid base64 end sequence",
            hint="Input data is missing padding, is truncated, or is otherwise corrupted.",
        )
    return _bytes_of_base64(symbols)


def _bytes_of_base64(symbols: str) -> bytes:
    """Decode groups of four symbols; from the first = on, they give fewer bytes (PostgreSQL)."""
    first = symbols.find("=")
    if first < 0:
        return b64decode(symbols)
    whole, kept = first // 4 * 4, first % 4 - 1
    rest = b64decode(symbols[whole:].replace("=", "A"))
    return b64decode(symbols[:whole]) + b"".join(
        rest[at : at + kept] for at in range(0, len(rest), 3)
    )


def _to_escapes(value: bytes) -> str:
    if _NEEDS_ESCAPE.search(value) is None:
        return value.decode("ascii")
    return "".join(map(_ESCAPED.__getitem__, value))


_ESCAPED: Final = tuple(
    "\\\\" if byte == 0x5C else chr(byte) if 0 < byte < 0x80 else f"\\{byte:03o}"
    for byte in range(256)
)


_WRITERS: Final[dict[str, Callable[[bytes], str]]] = {
    "hex": bytes.hex,
    "base64": _to_base64,
    "escape": _to_escapes,
}
_READERS: Final[dict[str, Callable[[str], bytes]]] = {
    "hex": bytes_from_hex,
    "base64": _from_base64,
    "escape": bytes_from_escapes,
}


_NAME_COST: Final = linear(60)
"""Of the name of a format, which is compared without regard to case."""


def _form_named(name: str | None) -> str:
    return (name or "")[:16].lower()


def _encode_cost(value: bytes | None, form: str | None) -> int:
    nanoseconds = {"hex": 3, "base64": 8}.get(_form_named(form), 60)
    return len(value or b"") * nanoseconds // 1000 + _NAME_COST(form)


def _decode_cost(text: str | None, form: str | None) -> int:
    named = _form_named(form)
    if named == "escape":
        return bytea_cost(text) + _NAME_COST(form)
    return len(text or "") * (4 if named == "hex" else 16) // 1000 + _NAME_COST(form)


def convert_from(value: bytes, encoding: str) -> str:
    codec = _codec(encoding, "source")
    try:
        text = value.decode(codec)
    except UnicodeDecodeError as error:
        raise _not_in(codec, value[error.start : error.end]) from None
    if "\0" in text:  # text cannot contain it
        raise _not_in(codec, b"\0")
    return text


def _not_in(codec: str, wrong: bytes) -> CharacterNotInRepertoire:
    shown = " ".join(f"0x{byte:02x}" for byte in wrong)
    return CharacterNotInRepertoire(
        f'invalid byte sequence for encoding "{codec.upper().replace("-", "")}": {shown}'
    )


def convert_to(text: str, encoding: str) -> bytes:
    codec = _codec(encoding, "destination")
    try:
        return text.encode(codec)
    except UnicodeEncodeError as error:
        shown = " ".join(f"0x{byte:02x}" for byte in text[error.start].encode())
        raise UntranslatableCharacter(
            f'character with byte sequence {shown} in encoding "UTF8" has no equivalent in '
            f'encoding "{encoding.upper()}"'
        ) from None


def _codec(encoding: str, which: str) -> str:
    codec = _ENCODINGS.get(encoding.lower().replace("_", "").replace("-", ""))
    if codec is None:
        raise InvalidParameterValue(f'invalid {which} encoding name "{encoding}"')
    return codec


# --- substrings ----------------------------------------------------------------------------------


def position(piece: bytes, value: bytes) -> int:
    return value.find(piece) + 1


def trim(value: bytes, ends: bytes) -> bytes:
    return value.strip(ends) if ends else value


def left_trim(value: bytes, ends: bytes) -> bytes:
    return value.lstrip(ends) if ends else value


def right_trim(value: bytes, ends: bytes) -> bytes:
    return value.rstrip(ends) if ends else value


# --- single bytes and bits -----------------------------------------------------------------------


def get_byte(value: bytes, at: int) -> int:
    _check_index(at, len(value))
    return value[at]


def set_byte(value: bytes, at: int, byte: int) -> bytes:
    _check_index(at, len(value))
    return value[:at] + bytes((byte & 0xFF,)) + value[at + 1 :]


def get_bit(value: bytes, at: int) -> int:
    """Return a bit; bits count from the right within each byte."""
    _check_index(at, 8 * len(value))
    return value[at // 8] >> at % 8 & 1


def set_bit(value: bytes, at: int, bit: int) -> bytes:
    _check_index(at, 8 * len(value))
    if bit not in (0, 1):
        raise InvalidParameterValue("new bit must be 0 or 1")
    byte = value[at // 8] & ~(1 << at % 8) | bit << at % 8
    return value[: at // 8] + bytes((byte,)) + value[at // 8 + 1 :]


def bit_count(value: bytes) -> int:
    return int.from_bytes(value).bit_count()


def _check_index(at: int, length: int) -> None:
    if not 0 <= at < length:
        raise ArraySubscriptError(f"index {at} out of valid range, 0..{length - 1}")


# --- hashes --------------------------------------------------------------------------------------


def md5(value: bytes) -> str:
    return hashlib.md5(value, usedforsecurity=False).hexdigest()


def md5_of_text(text: str) -> str:
    return md5(text.encode())


def _hash(name: str) -> Callable[[bytes], bytes]:
    make: Any = getattr(hashlib, name)
    return lambda value: bytes(make(value).digest())


# --- the tables ----------------------------------------------------------------------------------


def _announced() -> Iterator[Function]:
    for name in ("length", "octet_length"):
        yield Function(name, (BYTEA,), INTEGER, len, inline="len({0})")
    yield Function("bit_length", (BYTEA,), INTEGER, lambda value: 8 * len(value))
    for name in ("substring", "substr"):
        yield Function(name, (BYTEA, INTEGER), BYTEA, substring)
        yield Function(name, (BYTEA, INTEGER, INTEGER), BYTEA, substring_for)
    yield Function("overlay", (BYTEA, BYTEA, INTEGER), BYTEA, overlay)
    yield Function("overlay", (BYTEA, BYTEA, INTEGER, INTEGER), BYTEA, overlay_for)
    yield Function("position", (BYTEA, BYTEA), INTEGER, position)
    yield Function("btrim", (BYTEA, BYTEA), BYTEA, trim)
    yield Function("ltrim", (BYTEA, BYTEA), BYTEA, left_trim)
    yield Function("rtrim", (BYTEA, BYTEA), BYTEA, right_trim)
    yield Function("get_byte", (BYTEA, INTEGER), INTEGER, get_byte)
    yield Function("set_byte", (BYTEA, INTEGER, INTEGER), BYTEA, set_byte)
    yield Function("get_bit", (BYTEA, BIGINT), INTEGER, get_bit)
    yield Function("set_bit", (BYTEA, BIGINT, INTEGER), BYTEA, set_bit)
    yield Function("bit_count", (BYTEA,), BIGINT, bit_count)
    for name in ("sha224", "sha256", "sha384", "sha512"):
        yield Function(name, (BYTEA,), BYTEA, _hash(name))


_DIGESTS: Final = frozenset({"md5", "sha1", "sha224", "sha256", "sha384", "sha512"})


def digest(value: bytes, kind: str) -> bytes:
    return bytes(hashlib.new(_digest_named(kind), value, usedforsecurity=False).digest())


def keyed_digest(value: bytes, key: bytes, kind: str) -> bytes:
    return hmac.new(key, value, _digest_named(kind)).digest()


def _digest_named(kind: str) -> str:
    if kind.lower() not in _DIGESTS:
        raise InvalidParameterValue(
            f'Cannot use "{kind}": No such hash algorithm',
            hint=f"There are {', '.join(sorted(_DIGESTS))}.",
        )
    return kind.lower()


FUNCTIONS: Final = (
    *_announced(),
    Function("digest", (BYTEA, TEXT), BYTEA, digest),
    Function("digest", (TEXT, TEXT), BYTEA, lambda text, kind: digest(text.encode(), kind)),
    Function("hmac", (BYTEA, BYTEA, TEXT), BYTEA, keyed_digest),
    Function(
        "hmac",
        (TEXT, TEXT, TEXT),
        BYTEA,
        lambda text, key, kind: keyed_digest(text.encode(), key.encode(), kind),
    ),
    Function("md5", (TEXT,), TEXT, md5_of_text),
    Function("md5", (BYTEA,), TEXT, md5),
    Function("encode", (BYTEA, TEXT), TEXT, encode, cost=_encode_cost),
    Function("decode", (TEXT, TEXT), BYTEA, decode, cost=_decode_cost),
    Function("convert_from", (BYTEA, TEXT), TEXT, convert_from),
    Function("convert_to", (TEXT, TEXT), BYTEA, convert_to),
)

OPERATORS: Final = (
    Function("||", (BYTEA, BYTEA), BYTEA, bytes.__add__, inline="({0} + {1})", symbol="||"),
)


def _append_bytes(state: list[bytes] | None, value: bytes, delimiter: bytes | None) -> list[bytes]:
    if state is None:
        return [value]
    state += (delimiter or b"", value)
    return state


AGGREGATES: Final = (
    Aggregate(
        "string_agg",
        (BYTEA, BYTEA),
        BYTEA,
        ("None",),
        "if {0} is not None: {s0} = append_bytes({s0}, {0}, {1})",
        "(None if {s0} is None else b''.join(joinable({s0})))",
        {"append_bytes": _append_bytes, "joinable": joinable},
        strict=False,
        ordered=True,
        keeps=True,
    ),
)
