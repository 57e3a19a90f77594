"""How clients prove who they are: keys, SCRAM, TLS with channel binding."""

from __future__ import annotations

import asyncio
import struct
from base64 import b64decode
from hashlib import sha256
from pathlib import Path
from ssl import PEM_cert_to_DER_cert

import asyncpg
import pg8000.native
import psycopg
import pytest

from qserver.control.scram import verifier_of
from qserver.errors import QserverError
from qserver.pgwire import end_point_of
from qserver.pgwire.authentication import SCRAM, Scram
from tests.pgwire.serving import KEY, Served, in_thread, serving
from tests.pgwire.wire import PASSWORD, Wire, code, startup

CERTIFICATE = Path(__file__).parent.parent / "http1" / "localhost.pem"
TLS = {
    "QSERVER_TLS_CERTIFICATE": str(CERTIFICATE),
    "QSERVER_TLS_KEY": str(CERTIFICATE.with_name("localhost.key.pem")),
}


async def new_key(served: Served, **options: object) -> tuple[str, str]:
    """The id and the secret of a new key."""
    keys = served.service.plane.keys
    record, secret = await keys.create(await served.grant(), "a key", **options)  # type: ignore[arg-type]
    return record.id, secret


def _entered(url: str) -> str:
    with psycopg.connect(url) as connection:
        assert connection.execute("select 1").fetchone() == (1,)
        return str(connection.info.user)


async def test_a_key_is_proved_by_scram() -> None:
    async with serving() as served:
        key_id, secret = await new_key(served)
        url = served.url_of(secret, key_id)
        assert await in_thread(_entered, f"{url}?require_auth=scram-sha-256") == key_id

        async def connect() -> None:
            connection = await asyncpg.connect(url)
            assert await connection.fetchval("select 1") == 1
            await connection.close()

        await in_thread(lambda: asyncio.run(connect()))

        def pg8000_connects() -> None:
            options = {"host": "127.0.0.1", "port": served.port, "database": "main"}
            connection = pg8000.native.Connection(key_id, password=secret, **options)
            assert connection.run("select 1") == [[1]]
            connection.close()

        await in_thread(pg8000_connects)


async def test_a_wrong_proof_and_a_key_that_there_is_not_are_told_apart_by_nobody() -> None:
    async with serving() as served:
        key_id, _ = await new_key(served)
        told = []
        for user in (key_id, "key_0123456789abcdefghjkmn"):
            with pytest.raises(psycopg.OperationalError) as caught:
                await in_thread(_entered, served.url_of("svc_k_wrongwrongwrong", user))
            told.append(str(caught.value).replace(user, "…"))
        assert told[0] == told[1] and "password authentication failed" in told[0]


async def test_a_revoked_key_cannot_be_proved() -> None:
    async with serving() as served:
        key_id, secret = await new_key(served)
        await served.service.plane.keys.revoke(await served.grant(), key_id)
        for user in (key_id, "me"):
            with pytest.raises(psycopg.OperationalError, match="revoked"):
                await in_thread(_entered, served.url_of(secret, user))


async def test_the_id_of_a_proved_key_is_no_token() -> None:
    async with serving() as served:
        key_id, secret = await new_key(served)
        await in_thread(_entered, served.url_of(secret, key_id))
        plane = served.service.plane
        assert plane.grant_nowait(key_id) is None
        with pytest.raises(QserverError):
            await plane.authenticate(key_id)


async def test_keys_are_limited_to_their_databases_and_need_scopes() -> None:
    async with serving() as served:
        grant = await served.grant()
        await served.service.plane.records.create(grant, "other")
        _, secret = await new_key(served, databases=["other"])
        hello = startup(user="me", database="main")
        async with await Wire.open(served.port) as wire:
            password = b"p" + struct.pack("!i", len(secret) + 5) + secret.encode() + b"\0"
            await wire.send(hello + password)
            assert code(await wire.until_end()) == "28000"
        async with await Wire.enter(served.port, startup(user="me"), password):
            pass  # the user is no database, so it is that of the key
        _, secret = await new_key(served, statements={"one": "select 1"})
        async with await Wire.open(served.port) as wire:
            password = b"p" + struct.pack("!i", len(secret) + 5) + secret.encode() + b"\0"
            await wire.send(hello + password)
            assert code(await wire.until_end()) == "28000"


async def test_tls_with_channel_binding() -> None:
    async with serving(**TLS) as served:
        key_id, secret = await new_key(served)
        url = served.url_of(secret, key_id)
        await in_thread(_entered, f"{url}?sslmode=require&channel_binding=require")
        await in_thread(_entered, f"{url}?sslmode=require&channel_binding=disable")
        await in_thread(_entered, f"{url}?sslmode=disable")
        await in_thread(_entered, f"{served.url}?sslmode=require")

        async def connect() -> None:
            connection = await asyncpg.connect(served.url, ssl="require")
            assert await connection.fetchval("select 1") == 1
            await connection.close()

        await in_thread(lambda: asyncio.run(connect()))


async def test_a_large_result_over_tls() -> None:
    def fetch(url: str) -> int:
        with psycopg.connect(url) as connection:
            sql = "select repeat('x', 1000) from generate_series(1, 3000)"
            return len(connection.execute(sql).fetchall())

    async with serving(**TLS) as served:
        assert await in_thread(fetch, f"{served.url}?sslmode=require") == 3000


def test_the_end_point_is_the_hash_of_the_certificate() -> None:
    pem = CERTIFICATE.read_text()
    der = PEM_cert_to_DER_cert(pem[pem.index("-----BEGIN") :])
    assert end_point_of(CERTIFICATE) == sha256(der).digest()


def test_the_exchange_of_rfc_7677() -> None:
    """The example of the RFC, whose server's nonce and salt are given."""

    salt = b64decode("W22ZaJ0SNY7soEsUEjb6gQ==")
    nonce = "%hvYDpWUa2RaTCAfuxFIlj)hNlF$k0"
    scram = Scram(verifier_of("pencil", salt), nonce, None, SCRAM, "user")
    first = scram.first(b"n,,n=user,r=rOprNGfwEbeRWgbNEkqO")
    assert first == (
        b"r=rOprNGfwEbeRWgbNEkqO%hvYDpWUa2RaTCAfuxFIlj)hNlF$k0,s=W22ZaJ0SNY7soEsUEjb6gQ==,i=4096"
    )
    final = scram.final(
        b"c=biws,r=rOprNGfwEbeRWgbNEkqO%hvYDpWUa2RaTCAfuxFIlj)hNlF$k0,"
        b"p=dHzbZapWIk4jUhN+Ute9ytag9zjfMHgsqmmiz7AndVQ="
    )
    assert final == b"v=6rriTRBi23WpRR/wtup+mMhUZUn/dB5nLTJRsjl95G4="


@pytest.mark.parametrize(
    "message", [b"", b"n", b"n,,", b"n,,n=user", b"p=x,,n=,r=a", b"n,,m=1,n=,r=a", b"\xff,,n=,r=a"]
)
def test_first_messages_that_make_no_sense(message: bytes) -> None:
    scram = Scram(verifier_of("pencil", b"0" * 16), "nonce", None, SCRAM, "user")
    with pytest.raises(QserverError):
        scram.first(message)


@pytest.mark.parametrize(
    "message", [b"", b"c=biws", b"c=biws,r=anonce,p=AAAA", b"c=eSws,r=anonce,p=AA==", b"c=biws,p=!"]
)
def test_last_messages_that_make_no_sense(message: bytes) -> None:
    scram = Scram(verifier_of("pencil", b"0" * 16), "nonce", None, SCRAM, "user")
    scram.first(b"n,,n=,r=a")
    with pytest.raises(QserverError):
        scram.final(message)


async def test_sessions_beyond_those_of_an_organization(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("qserver.pgwire.startup.CONNECTIONS_OF_ORGANIZATION_MAX", 2)
    async with serving() as served:
        async with await Wire.enter(served.port), await Wire.enter(served.port):
            async with await Wire.open(served.port) as wire:
                await wire.send(startup(user="me", database="main") + PASSWORD)
                assert code(await wire.until_end()) == "53300"
    assert KEY


async def test_statements_count_as_requests() -> None:
    async with serving() as served:
        grant = await served.grant()
        plane = served.service.plane
        change: dict[str, int | None] = {"requests_per_minute": 3}
        await plane.organizations.change(grant, grant.organization_id, None, change)
        async with await Wire.enter(served.port) as wire:
            told = [await wire.run("select 1") for _ in range(5)]
        assert [each[0].kind for each in told] == ["T", "T", "T", "E", "E"]
        assert code(told[3]) == "53400" and told[3][0].fields()["H"].startswith("Wait")
