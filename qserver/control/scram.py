"""What is stored of a key so that its owner can prove it without sending it: SCRAM-SHA-256.

    secret ─ PBKDF2 with a salt ─► salted password ─┬─► client key ─ SHA-256 ─► stored key
                                                    └─► server key

Whoever has the stored key can check a proof and cannot make one. A key has 192 random bits, so that
many iterations add nothing to its safety; they are those that clients expect (RFC 7677), and their
cost is the client's.
"""

from __future__ import annotations

from hashlib import pbkdf2_hmac, sha256
from hmac import digest
from typing import Final

import msgspec

ITERATIONS: Final = 4096
SALT_BYTES: Final = 16
_DIGEST_BYTES: Final = 32


class Verifier(msgspec.Struct, frozen=True):
    """What checks a proof."""

    salt: bytes
    stored_key: bytes
    server_key: bytes

    def to_bytes(self) -> bytes:
        return self.salt + self.stored_key + self.server_key

    @staticmethod
    def from_bytes(data: bytes) -> Verifier:
        at = SALT_BYTES + _DIGEST_BYTES
        return Verifier(data[:SALT_BYTES], data[SALT_BYTES:at], data[at:])


def verifier_of(secret: str, salt: bytes) -> Verifier:
    """Return what is stored of a secret."""
    salted = pbkdf2_hmac("sha256", secret.encode(), salt, ITERATIONS)
    client_key = digest(salted, b"Client Key", "sha256")
    return Verifier(salt, sha256(client_key).digest(), digest(salted, b"Server Key", "sha256"))
