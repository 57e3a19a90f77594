"""The dialect of SQLAlchemy: `create_engine("qserver://:key@host/database")`.

    SQLAlchemy ──► QserverDialect (PostgreSQL's, with our types of parameters) ──► qserver.dbapi

SQLAlchemy finds it by the entry points of pyproject.toml. To everything above it is a driver of
PostgreSQL: its name is `postgresql`, so `postgresql_where`, ON CONFLICT, arrays, JSONB, Alembic and
pandas work as they do there. Reflection asks `pg_catalog`.
"""

from __future__ import annotations

from qserver.sqlalchemy.dialect import QserverDialect, QserverHttpsDialect

__all__ = ["QserverDialect", "QserverHttpsDialect"]
