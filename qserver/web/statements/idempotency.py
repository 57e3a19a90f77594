"""Names idempotent requests: by their sender, and the key that the sender chose.

An Idempotency-Key belongs to a database and to the API key or session that sent it. Equal keys of
two senders never meet.

Answers are stored in the order of names. A name ends with the key itself, so keys that count up, or
begin with a time, are neighbours, and those of one round are written into few pages. Random keys
are scattered over all pages, and cost more.
"""

from __future__ import annotations

from functools import lru_cache
from hashlib import sha256
from typing import Final

from qserver.control.records import Grant
from qserver.errors import InvalidRequest
from qserver.limits import IDEMPOTENCY_KEY_BYTES_MAX
from qserver.web.description.catalogue import ROUTES
from qserver.web.route import Route

REPLAYED: Final = (b"idempotency-replayed", b"true")

KEY_WHOLE_BYTES_MAX: Final = 64
"""Of a longer key the name has a digest: names are held in memory."""


def name_of_answer(database_id: str, grant: Grant, key: bytes) -> bytes:
    """The name under which the answer is stored; raises if the key is empty or too long."""
    if not key:
        raise InvalidRequest("the Idempotency-Key is empty")
    if len(key) > IDEMPOTENCY_KEY_BYTES_MAX:
        raise InvalidRequest(
            f"an Idempotency-Key has at most {IDEMPOTENCY_KEY_BYTES_MAX} characters,"
            f" this one has {len(key)}"
        )
    whose = _digest_of_sender(database_id, grant.session_id or grant.key_id)
    if len(key) > KEY_WHOLE_BYTES_MAX:
        return b"%b#%b" % (whose, sha256(key).digest())
    return b"%b=%b" % (whose, key)


@lru_cache(maxsize=1024)
def _digest_of_sender(database_id: str, sender: str) -> bytes:
    return sha256(b"%b\0%b" % (database_id.encode(), sender.encode())).digest()[:16]


def fingerprint_of(route: str, body: bytes) -> bytes:
    return sha256(b"%b\0%b" % (route.encode(), body)).digest()


def no_key_for(route: Route) -> InvalidRequest:
    """The error of a route that takes no Idempotency-Key and would be applied each time."""
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
