"""The dialect: types there and back, reflection, transactions, Alembic and pandas."""

from __future__ import annotations

import datetime as dt
from collections.abc import Iterator
from decimal import Decimal
from typing import Any
from uuid import UUID

import pandas
import pytest
import sqlalchemy as sa
from alembic.autogenerate import compare_metadata
from alembic.migration import MigrationContext
from alembic.operations import Operations
from sqlalchemy.dialects import postgresql as pg

from tests.dbapi.served import KEY, client_of, served
from tests.web.contract.servers import Server, free_port

WIRE_PORT = free_port()

ROW: dict[str, Any] = {
    "id": 1,
    "name": "Ada",
    "price": Decimal("1.50"),
    "ratio": 0.5,
    "at": dt.datetime(2030, 1, 2, 3, 4, 5, 6, dt.UTC),
    "local": dt.datetime(2030, 1, 2, 3, 4, 5),
    "day": dt.date(2030, 1, 2),
    "clock": dt.time(1, 2, 3),
    "span": dt.timedelta(days=-1, seconds=1.5),
    "tags": ["a", "b"],
    "document": {"a": [1, None, {"b": "c"}]},
    "mood": "sad",
    "token": UUID(int=7),
    "content": b"\0x",
    "flag": True,
}


def things(metadata: sa.MetaData) -> sa.Table:
    return sa.Table(
        "things",
        metadata,
        sa.Column("id", sa.Integer, primary_key=True),
        sa.Column("name", sa.String(30), nullable=False, index=True),
        sa.Column("price", sa.Numeric(8, 2), server_default="0"),
        sa.Column("ratio", sa.Float),
        sa.Column("at", sa.DateTime(timezone=True)),
        sa.Column("local", sa.DateTime),
        sa.Column("day", sa.Date),
        sa.Column("clock", sa.Time),
        sa.Column("span", sa.Interval),
        sa.Column("tags", pg.ARRAY(sa.Text)),
        sa.Column("document", pg.JSONB),
        sa.Column("mood", sa.Enum("sad", "happy", name="mood")),
        sa.Column("token", sa.Uuid),
        sa.Column("content", sa.LargeBinary),
        sa.Column("flag", sa.Boolean),
        sa.UniqueConstraint("name", "price", name="things_name_price"),
        sa.CheckConstraint("price >= 0", name="things_price"),
        comment="all kinds of",
    )


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    folder = tmp_path_factory.mktemp("dialect")
    with served(folder, QSERVER_PG_PORT=str(WIRE_PORT)) as running:
        yield running


@pytest.fixture
def engine(server: Server) -> Iterator[sa.Engine]:
    with client_of(server) as client:
        client.create_database("dialect")
        engine = sa.create_engine(f"qserver://:{KEY}@127.0.0.1:{server.port}/dialect")
        yield engine
        engine.dispose()
        client.delete_database("dialect")


@pytest.fixture(params=["http", "wire"])
def either_engine(request: pytest.FixtureRequest, engine: sa.Engine) -> Iterator[sa.Engine]:
    """Over HTTP, and over the wire with PostgreSQL's own dialect."""
    if request.param == "http":
        yield engine
        return
    url = f"postgresql+psycopg://me:{KEY}@127.0.0.1:{WIRE_PORT}/dialect"
    over_wire = sa.create_engine(url)
    yield over_wire
    over_wire.dispose()


def test_values_come_back_as_they_were(engine: sa.Engine) -> None:
    table = things(metadata := sa.MetaData())
    metadata.create_all(engine)
    rows = [ROW, dict.fromkeys(ROW) | {"id": 2, "name": "none"}]
    for _ in range(2):
        with engine.begin() as connection:
            connection.execute(table.insert(), rows)
            found = connection.execute(sa.select(table).order_by(table.c.id)).mappings().all()
            assert [dict(row) for row in found] == rows
            for name, value in ROW.items():
                same = sa.select(table.c.id).where(table.c[name] == value)
                assert connection.execute(same).scalars().all() == [1], name
            connection.execute(table.delete())


@pytest.mark.long
def test_rows_are_inserted_together_and_upserted(engine: sa.Engine) -> None:
    table = things(metadata := sa.MetaData())
    metadata.create_all(engine)
    with engine.begin() as connection:
        names = [{"name": f"n{number}"} for number in range(2500)]
        ids = connection.execute(
            table.insert().returning(table.c.id, sort_by_parameter_order=True), names
        )
        assert [row.id for row in ids] == list(range(1, 2501))
        upsert = pg.insert(table).values(id=1, name="new")
        connection.execute(
            upsert.on_conflict_do_update(index_elements=["id"], set_={"name": upsert.excluded.name})
        )
        assert connection.scalar(sa.select(table.c.name).where(table.c.id == 1)) == "new"
        document = table.c.document
        connection.execute(table.update().values(document={"a": {"b": [1, 2]}}))
        inside = sa.select(sa.func.count()).where(document["a"]["b"][1].as_integer() == 2)
        assert connection.scalar(inside) == 2500
        has = sa.select(sa.func.count()).where(document.has_key("a"), document[("a", "b")] != None)  # noqa: E711
        assert connection.scalar(has) == 2500


def test_transactions_are_serializable_or_none(engine: sa.Engine) -> None:
    with engine.connect() as connection:
        assert connection.get_isolation_level() == "SERIALIZABLE"
        connection.execute(sa.text("CREATE TABLE t (n INTEGER)"))
        connection.rollback()
        assert not sa.inspect(connection).has_table("t")
    with engine.connect().execution_options(isolation_level="AUTOCOMMIT") as connection:
        connection.execute(sa.text("CREATE TABLE t (n INTEGER)"))
    assert sa.inspect(engine).has_table("t")
    with pytest.raises(sa.exc.ArgumentError, match="SERIALIZABLE"):
        engine.connect().execution_options(isolation_level="READ COMMITTED")
    with engine.begin() as one, engine.connect() as other:
        one.execute(sa.text("INSERT INTO t VALUES (1)"))
        other.execute(sa.text("INSERT INTO t SELECT count(*) FROM t"))
        one.commit()
        with pytest.raises(sa.exc.OperationalError) as caught:
            other.commit()
        assert caught.value.orig is not None
        assert caught.value.orig.sqlstate == "40001"  # type: ignore[attr-defined]
        assert not caught.value.connection_invalidated
    with engine.connect().execution_options(postgresql_readonly=True) as connection:
        with pytest.raises(sa.exc.InternalError):
            connection.execute(sa.text("DELETE FROM t"))


def test_rows_are_streamed(engine: sa.Engine) -> None:
    with engine.connect() as connection:
        series = sa.text("SELECT n FROM generate_series(1, 5000) n")
        result = connection.execution_options(yield_per=100).execute(series)
        assert result.fetchone() == (1,)
        assert connection.scalar(sa.text("SELECT 1")) == 1
        assert len(result.all()) == 4999


def test_only_a_server_that_is_not_reached_is_a_disconnect(server: Server) -> None:
    engine = sa.create_engine("qserver://:svc_k_none@127.0.0.1:1/main", pool_pre_ping=True)
    with pytest.raises(sa.exc.OperationalError) as caught:
        engine.connect()
    assert engine.dialect.is_disconnect(caught.value.orig, None, None)  # type: ignore[arg-type]
    url = f"qserver://:{KEY}@127.0.0.1:{server.port}/main"
    engine = sa.create_engine(url, pool_pre_ping=True)
    for _ in range(2):
        with engine.connect() as connection:
            with pytest.raises(sa.exc.ProgrammingError) as caught_other:
                connection.execute(sa.text("SELECT none"))
            assert not caught_other.value.connection_invalidated
    engine.dispose()


def test_the_url_says_whether_it_is_tls() -> None:
    urls = {"qserver://:k@h/d": False, "qserver+https://:k@h:1/d?TimeZone=UTC": True}
    for url, https in urls.items():
        engine = sa.create_engine(url)
        _, options = engine.dialect.create_connect_args(engine.url)
        assert options["https"] is https
        assert (options["key"], options["database"]) == ("k", "d")
        assert options["settings"] == ({"TimeZone": "UTC"} if https else {})


@pytest.mark.long
def test_alembic_finds_no_difference_after_an_upgrade(either_engine: sa.Engine) -> None:
    metadata = sa.MetaData()
    table = things(metadata)
    sa.Table(
        "parts",
        metadata,
        sa.Column("id", sa.BigInteger, sa.Identity(), primary_key=True),
        sa.Column("thing", sa.ForeignKey(table.c.id, ondelete="CASCADE"), nullable=False),
        sa.Column("made", sa.DateTime(timezone=True), server_default=sa.func.now()),
        sa.Column("twice", sa.Integer, sa.Computed("thing * 2", persisted=True)),
        sa.Index("parts_thing", "thing", unique=True, postgresql_where=sa.text("thing > 0")),
    )
    options = {"compare_type": True, "compare_server_default": True}
    with either_engine.connect() as connection:
        context = MigrationContext.configure(connection, opts=options)
        assert len(compare_metadata(context, metadata)) > 2
        operations = Operations(context)
        with context.begin_transaction():
            operations.create_table("things", sa.Column("id", sa.Integer, primary_key=True))
            operations.drop_table("things")
            metadata.create_all(connection)
            operations.add_column("things", sa.Column("size", sa.SmallInteger))
            operations.alter_column("things", "size", new_column_name="width", type_=sa.Integer())
            operations.drop_column("things", "width")
        connection.commit()
    with either_engine.connect() as connection:
        context = MigrationContext.configure(connection, opts=options)
        assert compare_metadata(context, metadata) == []


@pytest.mark.long
def test_pandas_writes_and_reads_frames(either_engine: sa.Engine) -> None:
    frame = pandas.DataFrame(
        {
            "n": range(300),
            "x": [number / 4 for number in range(300)],
            "name": [f"n{number}" for number in range(300)],
            "at": pandas.date_range("2030-01-01", periods=300, freq="h"),
            "flag": [number % 2 == 0 for number in range(300)],
        }
    )
    assert frame.to_sql("frames", either_engine, index=False) in (300, -1, None)
    back = pandas.read_sql_table("frames", either_engine)
    pandas.testing.assert_frame_equal(back, frame, check_dtype=False)
    frame.to_sql(
        "frames", either_engine, index=False, if_exists="append", method="multi", chunksize=100
    )
    counted = pandas.read_sql("SELECT count(*) AS n FROM frames", either_engine)
    assert counted["n"].tolist() == [600]
    query = sa.text("SELECT n FROM frames WHERE n < :most")
    parts = list(pandas.read_sql(query, either_engine, params={"most": 100}, chunksize=64))
    assert [len(part) for part in parts] == [64, 64, 64, 8]
