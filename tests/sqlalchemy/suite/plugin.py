"""SQLAlchemy's plugin of pytest, and what its tests must know about these databases.

They find these functions by the name in the URL: `qserver`, or `postgresql` over the wire. It is no
`conftest.py`, since only the runs of `__main__.py` may load it.
"""

from __future__ import annotations

from typing import Any

import pytest

pytest.register_assert_rewrite("sqlalchemy.testing.assertions")

from sqlalchemy.dialects.postgresql import provision as of_postgresql  # noqa: E402
from sqlalchemy.testing import provision  # noqa: E402
from sqlalchemy.testing.plugin.pytestplugin import *  # noqa: E402, F403


def the_url_itself(url: Any, driver: str, query_str: str) -> Any:
    """There is one driver."""
    return url


def no_extensions(url: Any, engine: Any, follower_ident: Any) -> None:
    """They are for tests of PostgreSQL alone, which are not among these."""


def set_default_schema(config: Any, connection: Any, schema_name: str) -> None:
    """SET would hold until the end of a transaction."""
    connection.settings["search_path"] = schema_name


provision.set_default_schema_on_connection.for_db("qserver")(set_default_schema)
provision.upsert.for_db("qserver")(of_postgresql._upsert)
provision.generate_driver_url.for_db("qserver")(the_url_itself)
provision.post_configure_engine.for_db("postgresql")(no_extensions)
