"""SCRAM-SHA-256, the server's half (RFC 5802, RFC 7677), without I/O.

    client-first   n,,n=,r=NONCE                  ─► server-first   r=NONCE…,s=SALT,i=4096
    client-final   c=biws,r=NONCE…,p=PROOF        ─► server-final   v=SIGNATURE

With SCRAM-SHA-256-PLUS the client names the certificate that it has seen (`tls-server-end-point`),
so nobody between the two can have answered in the server's place.
"""

from __future__ import annotations

from base64 import b64decode, b64encode
from hashlib import sha256
from hmac import compare_digest, digest
from typing import Final

from qserver.control.scram import ITERATIONS, Verifier
from qserver.errors import InvalidPassword, ProtocolViolation

SCRAM: Final = "SCRAM-SHA-256"
SCRAM_PLUS: Final = "SCRAM-SHA-256-PLUS"
_BINDING: Final = "tls-server-end-point"


class Scram:
    """One exchange."""

    def __init__(
        self, verifier: Verifier, nonce: str, binding: bytes | None, mechanism: str, user: str
    ) -> None:
        """`nonce` is the server's part. `binding`: the hash of its certificate, over TLS."""
        self._verifier = verifier
        self._nonce = nonce
        self._binding = binding
        self._is_plus = mechanism == SCRAM_PLUS
        self._user = user
        self._header = ""
        self._transcript = ""

    def first(self, data: bytes) -> bytes:
        """Take the client's first message; return the server's."""
        text = _ascii(data)
        flag, _, rest = text.partition(",")
        _, comma, bare = rest.partition(",")
        if not comma:
            raise malformed()
        self._check_flag(flag)
        self._header = text[: len(text) - len(bare)]
        attributes = _attributes(bare)
        nonce = attributes.get("r", "")
        if not nonce or "m" in attributes or "n" not in attributes:
            raise malformed()
        self._nonce = nonce + self._nonce
        salt = b64encode(self._verifier.salt).decode()
        answer = f"r={self._nonce},s={salt},i={ITERATIONS}"
        self._transcript = f"{bare},{answer}"
        return answer.encode()

    def _check_flag(self, flag: str) -> None:
        if self._is_plus:
            if flag != f"p={_BINDING}":
                raise ProtocolViolation("unsupported SCRAM channel-binding type")
        elif flag == "y" and self._binding is not None:
            raise InvalidPassword(
                "SCRAM channel binding negotiation error",
                detail="The client supports SCRAM channel binding but thinks the server does not."
                " However, this server does support channel binding.",
            )
        elif flag not in ("n", "y"):
            raise malformed()

    def final(self, data: bytes) -> bytes:
        """Take the client's proof; return the server's, or raise."""
        without, comma, proof = _ascii(data).rpartition(",p=")
        attributes = _attributes(without)
        bound = self._header.encode() + (self._binding or b"" if self._is_plus else b"")
        if not comma or attributes.get("r") != self._nonce:
            raise malformed()
        if attributes.get("c") != b64encode(bound).decode():
            raise InvalidPassword("SCRAM channel binding check failed")
        verifier, spoken = self._verifier, f"{self._transcript},{without}".encode()
        signature = digest(verifier.stored_key, spoken, "sha256")
        given = _decoded(proof)
        if len(given) != len(signature):
            raise malformed()
        client_key = bytes(a ^ b for a, b in zip(given, signature, strict=True))
        if not compare_digest(sha256(client_key).digest(), verifier.stored_key):
            raise wrong_password(self._user)
        return b"v=" + b64encode(digest(verifier.server_key, spoken, "sha256"))


def wrong_password(user: str, detail: str | None = None) -> InvalidPassword:
    return InvalidPassword(
        f'password authentication failed for user "{user}"',
        detail=detail,
        hint="The password is an API key, svc_k_…, or the token of a session.",
    )


def malformed() -> ProtocolViolation:
    return ProtocolViolation("malformed SCRAM message")


def _ascii(data: bytes) -> str:
    try:
        return data.decode("ascii")
    except UnicodeDecodeError:
        raise malformed() from None


def _attributes(text: str) -> dict[str, str]:
    found: dict[str, str] = {}
    for each in text.split(","):
        name, equals, value = each.partition("=")
        if not equals or len(name) != 1:
            raise malformed()
        found.setdefault(name, value)
    return found


def _decoded(text: str) -> bytes:
    try:
        return b64decode(text, validate=True)
    except ValueError:
        raise malformed() from None
