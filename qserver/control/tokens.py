"""Makes secrets, their digests, and the ids of records.

    svc_k_ + 32 url-safe characters     a key          192 bits, so that a plain digest is enough:
    svc_s_ + 32 url-safe characters     a session      the input of SHA-256 cannot be guessed
    org_, db_, key_, ses_ + 22          an id          sorts by the time it was made

Only digests are stored, and what checks a proof of a key (`scram`). A secret exists in the answer
that shows it, in the requests that bring it and, while its meaning is cached, in memory. Chance
comes in as an argument, like everywhere.
"""

from __future__ import annotations

import re
from base64 import urlsafe_b64encode
from collections.abc import Callable
from hashlib import sha256
from typing import Final

from qserver.control.scram import SALT_BYTES
from qserver.errors import InvalidRequest
from qserver.limits import SECRET_LENGTH_MAX, SECRET_LENGTH_MIN

KEY_PREFIX: Final = "svc_k_"
SESSION_PREFIX: Final = "svc_s_"
SHOWN_LENGTH: Final = 10
"""Characters of a secret that may be shown: its kind and four more."""

_SECRET_BYTES: Final = 24
_DIGITS: Final = "0123456789abcdefghjkmnpqrstvwxyz"
_PAIRS: Final = [first + second for first in _DIGITS for second in _DIGITS]
_TIME_PAIRS, _CHANCE_PAIRS = 5, 6
_TOKEN: Final = re.compile(rf"svc_[ks]_[A-Za-z0-9_-]{{{SECRET_LENGTH_MIN},{SECRET_LENGTH_MAX}}}")


class Mint:
    """Makes secrets and ids from a source of unpredictable random bytes."""

    def __init__(self, secrets: Callable[[int], bytes]) -> None:
        self._secrets = secrets

    def key(self) -> str:
        return KEY_PREFIX + self._secret()

    def session_token(self) -> str:
        return SESSION_PREFIX + self._secret()

    def id(self, kind: str, now: float) -> str:
        """Make an id of a kind; later ones sort behind earlier ones, to the millisecond."""
        chance = int.from_bytes(self._secrets(8), "big")
        return f"{kind}_{_digits(int(now * 1000), _TIME_PAIRS)}{_digits(chance, _CHANCE_PAIRS)}"

    def salt(self) -> bytes:
        """Make a salt for what is stored of a secret."""
        return self._secrets(SALT_BYTES)

    def _secret(self) -> str:
        return urlsafe_b64encode(self._secrets(_SECRET_BYTES)).decode()

    def __repr__(self) -> str:
        return "a mint of secrets and ids"


def digest(token: str) -> bytes:
    return sha256(token.encode()).digest()


def is_token(text: str) -> bool:
    """Return whether a text has the shape of a key or of a session's token."""
    return _TOKEN.fullmatch(text) is not None


def check_key(text: str) -> None:
    """Refuse an operator's key unless it has the shape of one."""
    if not (text.startswith(KEY_PREFIX) and is_token(text)):
        raise InvalidRequest(
            "the first key does not have the shape of a key",
            detail=f"A key is {KEY_PREFIX} and {SECRET_LENGTH_MIN} to {SECRET_LENGTH_MAX}"
            " letters, digits, - or _.",
            hint="Give such a key, or none to have one made.",
        )


def _digits(number: int, pairs: int) -> str:
    """Return the last pairs of digits of a number in base 32, whose letters look like no digits."""
    return "".join([_PAIRS[number >> 10 * at & 1023] for at in reversed(range(pairs))])
