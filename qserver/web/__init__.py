"""The HTTP layer: the only package that knows HTTP routes, statuses and headers.

    http1, our server ────┬─► app ─► endpoint ─┬─ statements: queries and transactions
    hypercorn ─► asgi ────┘                    └─ routes: everything else, quart-trio

    statements/     queries, transactions and their answers      bulk/         rows in and out
    streaming/      rows, live queries and feeds                 routes/       everything else
    description/    OpenAPI, docs, welcome                       service/      the process itself

`create_app()` is the application for any ASGI server that runs Trio.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from qserver.web.asgi import AsgiApplication


def create_app() -> AsgiApplication:
    """The application with the settings of the environment; see `create`."""
    from qserver.web.service import create  # late: these imports are slow

    return create.create_app()
