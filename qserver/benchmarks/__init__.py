"""`qserver bench`: a real load over HTTP against any server, and its report.

    command.py ─► setup.py      a database bench_… with its rows; deleted at the end
                  workloads.py  the requests, as bytes, ready to send ─► target.py
                  clients.py    clients in a nursery, one request at a time each ─► wire.py
                  report.py     what was measured, as a table or JSON

The client must not be slower than the server it measures. So it uses the socket directly: a request
is encoded and an answer is parsed in C (msgspec, httptools), and the client reads only its status
and its first and last bytes. One client sends, waits and sends again; more clients, not deeper
queues, find a server's limit.
"""

from __future__ import annotations
