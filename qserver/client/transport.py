"""Time limits and error translation for httpx, shared by both flavours.

The limit on silence exceeds the server's limit on a statement, the longest `wait_ms` and the
interval of its keep-alive comments, so the server's own answer arrives first.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Final

import httpx

from qserver.client.failures import ConnectionFailed, ConnectionLost, unexpected_answer
from qserver.errors import InvalidRequest, QserverError

CONNECT_SECONDS: Final = 10.0
SILENCE_SECONDS: Final = 90.0

_UNREACHABLE: Final = "Is the server running (qserver serve), and is the URL right?"
_UNTRUSTED: Final = "Set SSL_CERT_FILE to the certificate of an authority that vouches for it."


def time_limits(silence_seconds: float) -> httpx.Timeout:
    return httpx.Timeout(silence_seconds, connect=CONNECT_SECONDS)


@contextmanager
def trouble_named(url: str) -> Iterator[None]:
    """Turn an httpx exception into one of our errors. Messages contain the URL, never the key."""
    try:
        yield
    except httpx.HTTPError as error:
        raise _named(error, url) from error
    except httpx.InvalidURL as error:
        raise InvalidRequest(f"{url!r} is not the URL of a server: {error}") from error


def _named(error: httpx.HTTPError, url: str) -> QserverError:
    reason = str(error) or type(error).__name__
    match error:
        case httpx.ConnectTimeout() | httpx.ConnectError():
            return ConnectionFailed(
                f"cannot reach {url}: {reason}",
                hint=_UNTRUSTED if "CERTIFICATE_VERIFY_FAILED" in reason else _UNREACHABLE,
            )
        case httpx.ReadTimeout() | httpx.WriteTimeout():
            return ConnectionLost(
                f"{url} was silent for too long",
                hint="A write may have been applied or not: look before you send it again.",
            )
        case httpx.DecodingError():
            return unexpected_answer(200, reason.encode())
        case _:
            return ConnectionLost(
                f"the connection to {url} broke: {reason}",
                hint="A write may have been applied or not: look before you send it again.",
            )
