"""qserver: a SQL database that you talk to over HTTP.

The packages import only downward: `values`, `sql` and `storage` are pure, `durability` keeps what
must survive, `engine` runs on Trio, and above it come `control`, `web` and the command line.
`docs/architecture.md` explains them.
"""

from __future__ import annotations

__version__ = "0.61.0"
