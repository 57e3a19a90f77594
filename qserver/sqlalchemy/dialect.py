"""What differs between a driver of PostgreSQL and ours.

Every transaction is serializable, so the other levels are refused rather than promised. There is no
connection to lose: one is only replaced if the server cannot be reached.
"""

from __future__ import annotations

from types import ModuleType
from typing import Any

from sqlalchemy.dialects.postgresql.base import PGDialect, PGExecutionContext
from sqlalchemy.engine.interfaces import ConnectArgsType, DBAPIConnection, DBAPICursor
from sqlalchemy.engine.url import URL

from qserver.sqlalchemy.column_types import COLUMN_TYPES

SERIALIZABLE = "SERIALIZABLE"
AUTOCOMMIT = "AUTOCOMMIT"


class QserverExecutionContext(PGExecutionContext):
    def create_server_side_cursor(self) -> Any:
        """Of `stream_results` and `yield_per`: rows are read as they are fetched."""
        return self._dbapi_connection.cursor(streaming=True)


class QserverDialect(PGDialect):
    """`qserver://:key@host:port/database`; settings of the session follow a `?`."""

    driver = "qserver"
    https = False

    supports_statement_cache = True
    default_paramstyle = "numeric_dollar"
    execution_ctx_cls = QserverExecutionContext
    colspecs = PGDialect.colspecs | COLUMN_TYPES
    supports_server_side_cursors = True
    supports_sane_multi_rowcount = True
    supports_native_json_deserialization = True

    def __init__(self, *, paramstyle: Any = None, **options: Any) -> None:
        """`?` would be taken for an operator of jsonb: parameters have numbers."""
        super().__init__(  # type: ignore[no-untyped-call]
            paramstyle=paramstyle or self.default_paramstyle, **options
        )

    @classmethod
    def import_dbapi(cls) -> ModuleType:
        from qserver import dbapi

        return dbapi

    def create_connect_args(self, url: URL) -> ConnectArgsType:
        return (
            [],
            {
                "host": url.host,
                "port": url.port,
                "database": url.database,
                "key": url.password,
                "https": self.https,
                "settings": dict(url.query),
            },
        )

    def get_isolation_level_values(self, dbapi_connection: DBAPIConnection) -> list[Any]:
        return [SERIALIZABLE, AUTOCOMMIT]

    def get_default_isolation_level(self, dbapi_connection: DBAPIConnection) -> Any:
        return SERIALIZABLE

    def get_isolation_level(self, dbapi_connection: DBAPIConnection) -> Any:
        return AUTOCOMMIT if dbapi_connection.autocommit else SERIALIZABLE

    def set_isolation_level(self, dbapi_connection: DBAPIConnection, level: Any) -> None:
        dbapi_connection.autocommit = level == AUTOCOMMIT

    def detect_autocommit_setting(self, dbapi_connection: DBAPIConnection) -> bool:
        return bool(dbapi_connection.autocommit)

    def get_readonly(self, connection: Any) -> bool:
        return bool(connection.read_only)

    def set_readonly(self, connection: Any, value: bool) -> None:
        connection.read_only = value

    def do_ping(self, dbapi_connection: Any) -> bool:
        dbapi_connection.ping()
        return True

    def is_disconnect(
        self, e: Any, connection: DBAPIConnection | None, cursor: DBAPICursor | None
    ) -> bool:
        """Whether the server was not reached, or its answer not received."""
        assert self.dbapi is not None
        return isinstance(e, self.dbapi.OperationalError) and str(e.sqlstate).startswith("08")


class QserverHttpsDialect(QserverDialect):
    """`qserver+https://:key@host/database`."""

    supports_statement_cache = True
    https = True
