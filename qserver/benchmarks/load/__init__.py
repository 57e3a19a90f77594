"""`qserver bench`: a real load over HTTP against any server, and its report.

    command.py ─► setup.py      a database bench_… with its rows; deleted at the end
                  workloads.py  the requests, as bytes, ready to send
                  clients.py    clients in a nursery, one request at a time each ─► wire.py
                  histogram.py  latencies, counted in buckets; the report

The client must not be slower than the server it measures. So it uses the socket directly: a request
is a prepared text with a number in it, an answer is parsed in C (httptools), and the client reads
only its status and its first and last bytes. One client sends, waits and sends again; more clients,
not deeper queues, find a server's limit.
"""

from __future__ import annotations
