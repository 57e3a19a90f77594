"""The names of requests that are applied once: who sent them, and the key that they chose.

An Idempotency-Key belongs to a database and to the API key or session that sent it. Two callers
that choose the same key never meet.
"""

from __future__ import annotations

from hashlib import sha256
from typing import Final

from qserver.control.records import Grant
from qserver.errors import InvalidRequest
from qserver.limits import IDEMPOTENCY_KEY_BYTES_MAX
from qserver.web.catalogue import ROUTES, Route

REPLAYED: Final = (b"idempotency-replayed", b"true")


def name_of_answer(database_id: str, grant: Grant, key: bytes) -> bytes:
    """The name under which the answer is stored; raises if the key is empty or too long."""
    if not key:
        raise InvalidRequest("the Idempotency-Key is empty")
    if len(key) > IDEMPOTENCY_KEY_BYTES_MAX:
        raise InvalidRequest(
            f"an Idempotency-Key has at most {IDEMPOTENCY_KEY_BYTES_MAX} characters,"
            f" this one has {len(key)}"
        )
    sender = grant.session_id or grant.key_id
    return sha256(b"%b\0%b\0%b" % (database_id.encode(), sender.encode(), key)).digest()


def fingerprint_of(route: str, body: bytes) -> bytes:
    return sha256(b"%b\0%b" % (route.encode(), body)).digest()


def no_key_for(route: Route) -> InvalidRequest:
    """The error of a route that changes something, and would do so each time it is asked to."""
    taking = [each.path for each in ROUTES if each.takes_idempotency_key]
    hint = f"It works on {', '.join(taking)}."
    if route.path.endswith("/commit"):
        hint = "The commit can be asked for again without one."
    return InvalidRequest(f"{route.method} {route.path} takes no Idempotency-Key", hint=hint)


def no_key_for_streams() -> InvalidRequest:
    return InvalidRequest(
        "a stream takes no Idempotency-Key",
        hint="Leave out /*+ STREAM */, or the key; Accept application/json for a whole answer.",
    )


def no_key_inside() -> InvalidRequest:
    return InvalidRequest(
        "a step of an open transaction takes no Idempotency-Key",
        hint="The commit can be asked for again without one.",
    )
