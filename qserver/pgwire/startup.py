"""How a client enters: encryption, startup, authentication, its database.

    SSLRequest ─► S, TLS or N          CancelRequest ─► cancels, and ends
        │
    StartupMessage ─► user is a key's id: SCRAM     otherwise: the password, over TLS or loopback
        │
    the database ─► here: ParameterStatus …, ready        another process's: the connection goes on

The password is an API key or the token of a session. With SCRAM it is not sent, so the key has to
be named: `user` is its id. For a key that there is not, the same is done with a verifier that
nobody can meet; so no one learns which ids there are.
"""

from __future__ import annotations

from base64 import b64encode
from functools import partial
from hmac import digest
from typing import Final

import msgspec

from qserver.control.databases import OpenDatabase
from qserver.control.owners import OwnedElsewhere
from qserver.control.records import Grant
from qserver.control.scram import SALT_BYTES, Verifier
from qserver.errors import (
    FeatureNotSupported,
    Forbidden,
    InvalidAuthorization,
    NotFound,
    ProtocolViolation,
    TooManyRequests,
    Unauthorized,
    UnknownDatabase,
)
from qserver.pgwire import messages
from qserver.pgwire.authentication import SCRAM, SCRAM_PLUS, Scram, wrong_password
from qserver.pgwire.limits import CONNECTIONS_OF_ORGANIZATION_MAX, FAILURES_MAX
from qserver.pgwire.messages import broken
from qserver.pgwire.settings import SessionSettings
from qserver.pgwire.state import Credentials, State
from qserver.pgwire.waits import INPUT, Cancel, Leave, Wait, Waits

KEY_ID: Final = "key_"
_NONCE_BYTES: Final = 18


class Arrival(msgspec.Struct, frozen=True):
    """What another process says of a client that it has let in."""

    token: str | None
    key_id: str | None
    database: str
    is_private: bool
    startup: dict[str, str]
    rest: bytes


def enter(state: State, arrival: Arrival | None = None) -> Waits[bool]:
    """Let a client in; False if it wanted something else, or is served elsewhere."""
    if arrival is None:
        startup = yield from _started(state)
        if startup is None:
            return False
        state.startup = startup
        state.host.check_ready()
        _read_settings(state)
        grant = yield from _authenticated(state)
    else:
        state.startup, state.is_private = arrival.startup, arrival.is_private
        state.credentials = Credentials(arrival.token, arrival.key_id)
        state.frames.feed(arrival.rest)
        _read_settings(state)
        grant = yield from state.authenticated()
    if grant.statements is not None:
        raise InvalidAuthorization(
            "this key can only run its statements, over HTTP", hint="Use a key with scopes."
        )
    if state.host.connections[grant.organization_id] >= CONNECTIONS_OF_ORGANIZATION_MAX:
        raise TooManyRequests("the organization has too many connections", hint="Close some.")
    try:
        opened = yield from _database(state, grant, arrival)
    except OwnedElsewhere as elsewhere:
        yield _leaving(state, elsewhere)
        return False
    state.connect(opened.id)
    opened.release()
    state.enter(grant)
    _welcome(state)
    return True


# --- before the startup ---------------------------------------------------------------------------


def _started(state: State) -> Waits[dict[str, str] | None]:
    """Return what the StartupMessage says; None after a CancelRequest."""
    asked_for: set[int] = set()
    while True:
        while (first := state.frames.next_unnamed()) is None:
            yield INPUT
        code, body = first
        if code == messages.CANCEL_REQUEST:
            if (found := messages.read_cancel(body)) is not None:
                yield Cancel(*found)
            return None
        if code in (messages.TLS_REQUEST, messages.GSS_REQUEST) and code not in asked_for:
            asked_for.add(code)
            yield from _encrypt(state, code)
            continue
        if code >> 16 != messages.PROTOCOL_3:
            raise FeatureNotSupported(
                f"unsupported frontend protocol {code >> 16}.{code & 0xFFFF}:"
                " server supports 3.0 to 3.0"
            )
        startup = messages.read_startup(body)
        unknown = [name for name in startup if name.startswith("_pq_.")]
        if code & 0xFFFF or unknown:
            state.out += messages.negotiate(0, unknown)
        return startup


def _encrypt(state: State, code: int) -> Waits[None]:
    if len(state.frames):
        raise broken("received unencrypted data after an encryption request")
    if code != messages.TLS_REQUEST or not state.host.has_tls or state.is_tls:
        state.out += b"N"
        return
    state.out += b"S"
    yield Wait.TLS
    state.is_tls = state.is_private = True


def _read_settings(state: State) -> None:
    startup = state.startup
    state.user = startup.get("user", "")
    if not state.user:
        raise InvalidAuthorization("no PostgreSQL user name specified in startup packet")
    if startup.get("replication", "false").lower() not in ("false", "off", "no", "0"):
        raise FeatureNotSupported("replication is not supported")
    state.settings = SessionSettings.of(startup)


# --- authentication -------------------------------------------------------------------------------


def _authenticated(state: State) -> Waits[Grant]:
    host, client = state.host, state.client
    if host.failures.count(client) >= FAILURES_MAX:
        raise TooManyRequests("too many failed authentications from this address", hint="Wait.")
    try:
        verifier = None
        if state.user.startswith(KEY_ID):
            verifier = yield partial(_verifier, state)
        if verifier is not None:
            return (yield from _proved(state, verifier))
        return (yield from _told(state))
    except (Unauthorized, InvalidAuthorization) as error:
        _count_failure(state)
        raise wrong_password(state.user, error.message) from error
    except Exception:
        _count_failure(state)
        raise


def _count_failure(state: State) -> None:
    state.host.failures.add(state.client)
    state.host.counts["authentications_failed"] += 1


async def _verifier(state: State) -> Verifier | None:
    """What checks a proof of the key; None if only the key itself will do: it is an old one."""
    data: bytes | None = await state.host.plane.access.verifier_of_key(state.user)
    if data is None:
        return None
    if not data:  # there is no such key: nobody can prove it
        data = digest(state.host.pepper, state.user.encode(), "sha256")
        return Verifier(data[:SALT_BYTES], data, data)
    return Verifier.from_bytes(data)


def _told(state: State) -> Waits[Grant]:
    """Ask for the key itself."""
    if not (state.is_private or state.host.takes_plaintext):
        raise InvalidAuthorization(
            "a key is not sent over a connection without TLS",
            hint="Connect with sslmode=require, or with the id of the key as user.",
        )
    state.out += messages.ASK_PASSWORD
    body = yield from _password(state)
    if body[-1:] != b"\0":
        raise ProtocolViolation("invalid password packet size")
    token = messages.text_of(body[:-1]).strip()
    plane = state.host.plane
    grant: Grant = plane.grant_nowait(token) or (yield partial(plane.authenticate, token))
    state.credentials = Credentials(token=token)
    return grant


def _proved(state: State, verifier: Verifier) -> Waits[Grant]:
    """Let the client prove that it has the key."""
    host = state.host
    binding = host.end_point if state.is_tls else None
    offered = [SCRAM] if binding is None else [SCRAM_PLUS, SCRAM]
    state.out += messages.ask_sasl(offered)
    mechanism, first = messages.read_initial_response((yield from _password(state)))
    if mechanism not in offered:
        raise ProtocolViolation("client selected an invalid SASL authentication mechanism")
    nonce = b64encode(host.secrets(_NONCE_BYTES)).decode()
    scram = Scram(verifier, nonce, binding, mechanism, state.user)
    state.out += messages.go_on_sasl(scram.first(first))
    state.out += messages.end_sasl(scram.final((yield from _password(state))))
    state.credentials = Credentials(key_id=state.user)
    grant: Grant = yield partial(host.plane.access.authenticate_key, state.user)
    return grant


def _password(state: State) -> Waits[bytes]:
    kind, body = yield from state.frame()
    if kind != messages.PASSWORD:
        raise ProtocolViolation(f"expected password response, got message type {chr(kind)!r}")
    return body


# --- the database ---------------------------------------------------------------------------------


def _database(state: State, grant: Grant, arrival: Arrival | None) -> Waits[OpenDatabase]:
    """Find the database that the startup names.

    Clients name their user if they were not told of a database; then it is the key's own.
    """
    plane = state.host.plane
    wanted = state.startup.get("database") or state.user if arrival is None else arrival.database
    try:
        try:
            found: OpenDatabase = yield partial(plane.database, grant, wanted)
        except NotFound:
            if wanted != state.user:
                raise
            found = yield partial(plane.database, grant, grant.database)
    except NotFound as error:
        raise UnknownDatabase(f'database "{wanted}" does not exist') from error
    except Forbidden as error:
        raise InvalidAuthorization(error.message, hint=error.hint) from error
    return found


def _leaving(state: State, elsewhere: OwnedElsewhere) -> Leave:
    credentials = state.credentials
    arrival = Arrival(
        credentials.token,
        credentials.key_id,
        state.startup.get("database") or state.user,
        state.is_private,
        state.startup,
        state.frames.rest(),
    )
    return Leave(elsewhere.process, msgspec.msgpack.encode(arrival))


def _welcome(state: State) -> None:
    out = state.out
    state.may_listen()
    out += messages.AUTHENTICATED
    for name, value in state.settings.reports(state.user):
        out += messages.parameter_status(name, value)
    out += messages.key_data(state.number, state.secret)
