"""qserver: a SQL database that you talk to over HTTP.

The package is divided into rooms that import only downward: `values`, `sql` and `storage` are
pure, `durability` keeps what must survive, `engine` is where Trio lives, and above it come
`control`, `web` and the command line. `docs/architecture.md` shows the way through them.
"""

from __future__ import annotations

__version__ = "0.61.0"
