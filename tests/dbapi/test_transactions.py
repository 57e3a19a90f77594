"""Transactions of a connection: when they begin and end, and what a conflict does."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from qserver import dbapi
from qserver.client import Client
from qserver.dbapi import Connection
from tests.dbapi.served import client_of, connected
from tests.web.contract.servers import Server


@pytest.fixture
def client(server: Server, database: str) -> Iterator[Client]:
    """Another user of the database, with a table of one row in it."""
    with client_of(server, database) as client:
        client.query("CREATE TABLE t (id INTEGER PRIMARY KEY, n INTEGER NOT NULL)")
        client.query("INSERT INTO t VALUES (1, 0)")
        yield client


def values_of(client: Client) -> list[tuple[int, ...]]:
    return client.query("SELECT id, n FROM t ORDER BY id").rows


def test_a_transaction_begins_with_the_first_statement(
    connection: Connection, client: Client
) -> None:
    connection.commit()
    connection.rollback()
    assert not connection.in_transaction
    cursor = connection.cursor()
    cursor.execute("UPDATE t SET n = 1")
    assert connection.in_transaction
    assert values_of(client) == [(1, 0)]
    connection.commit()
    assert not connection.in_transaction
    assert values_of(client) == [(1, 1)]
    cursor.execute("UPDATE t SET n = 2")
    connection.rollback()
    assert values_of(client) == [(1, 1)]


def test_a_conflict_is_raised_at_the_commit_and_nothing_is_repeated(
    connection: Connection, client: Client
) -> None:
    cursor = connection.cursor()
    cursor.execute("UPDATE t SET n = n + 10")
    client.query("UPDATE t SET n = n + 1")
    with pytest.raises(dbapi.OperationalError) as caught:
        connection.commit()
    assert caught.value.sqlstate == "40001"
    assert caught.value.retryable
    assert caught.value.conflict is not None and caught.value.conflict["table"] == "t"
    assert not connection.in_transaction
    assert values_of(client) == [(1, 1)]
    cursor.execute("UPDATE t SET n = n + 10")
    connection.commit()
    assert values_of(client) == [(1, 11)]


def test_with_autocommit_each_statement_is_a_transaction(server: Server, client: Client) -> None:
    assert client.database is not None
    with connected(server, client.database, autocommit=True) as connection:
        cursor = connection.cursor()
        cursor.execute("UPDATE t SET n = 5")
        assert not connection.in_transaction
        assert values_of(client) == [(1, 5)]
        connection.rollback()
        assert values_of(client) == [(1, 5)]
        connection.autocommit = False
        cursor.execute("UPDATE t SET n = 6")
        with pytest.raises(dbapi.ProgrammingError, match="autocommit cannot be set"):
            connection.autocommit = True
        assert values_of(client) == [(1, 5)]


def test_savepoints_undo_a_part(connection: Connection, client: Client) -> None:
    cursor = connection.cursor()
    cursor.execute("UPDATE t SET n = 1")
    cursor.execute("SAVEPOINT a")
    with pytest.raises(dbapi.DataError):
        cursor.execute("SELECT 1 / 0")
    with pytest.raises(dbapi.InternalError):
        connection.commit()
    cursor.execute("ROLLBACK TO SAVEPOINT a")
    assert connection.in_transaction
    connection.commit()
    assert values_of(client) == [(1, 1)]


@pytest.mark.parametrize("text", ["ROLLBACK", "rollback work", "/* end */ ABORT TRANSACTION"])
def test_rollback_as_a_statement_ends_the_transaction(
    connection: Connection, client: Client, text: str
) -> None:
    cursor = connection.cursor()
    cursor.execute("UPDATE t SET n = 1")
    cursor.execute(text)
    assert not connection.in_transaction
    cursor.execute("SELECT n FROM t")
    assert cursor.fetchall() == [(0,)]


def test_commit_as_a_statement_is_refused(connection: Connection, client: Client) -> None:
    cursor = connection.cursor()
    cursor.execute("UPDATE t SET n = 1")
    with pytest.raises(dbapi.InternalError) as caught:
        cursor.execute("COMMIT")
    assert caught.value.sqlstate == "25001"


def test_a_transaction_that_the_server_ended_is_not_begun_anew_by_itself(
    connection: Connection, client: Client
) -> None:
    cursor = connection.cursor()
    cursor.execute("UPDATE t SET n = 1")
    assert connection._transaction is not None
    client.roll_back_transaction(connection._transaction)
    for _ in range(2):
        with pytest.raises(dbapi.OperationalError) as caught:
            cursor.execute("UPDATE t SET n = 2")
        assert caught.value.sqlstate == "QS030"
    connection.rollback()
    cursor.execute("UPDATE t SET n = 3")
    connection.commit()
    assert values_of(client) == [(1, 3)]


@pytest.mark.parametrize("autocommit", [False, True])
def test_a_connection_that_only_reads_refuses_to_write(
    server: Server, client: Client, autocommit: bool
) -> None:
    assert client.database is not None
    options = {"read_only": True, "autocommit": autocommit}
    with connected(server, client.database, **options) as connection:
        cursor = connection.cursor()
        assert cursor.execute("SELECT n FROM t").fetchall() == [(0,)]
        with pytest.raises(dbapi.InternalError) as caught:
            cursor.execute("UPDATE t SET n = 1")
        assert caught.value.sqlstate == "25006"
        connection.rollback()
        connection.read_only = False
        cursor.execute("UPDATE t SET n = 2")
        connection.commit()
    assert values_of(client) == [(1, 2)]
