"""`qserver bench`: a real load over HTTP against any server, and what came of it.

    command.py ─► setup.py      a database bench_… with its rows; deleted at the end
                   workloads.py  what is asked, as bytes, ready to send
                   load.py       clients in a nursery, one request at a time each ─► wire.py
                   histogram.py      latencies, counted in buckets; the report

The load must not be slower than what it measures. So the client is written against the socket: a
request is one prepared text with a number in it, an answer is parsed in C (httptools) and only its
status and its first bytes are looked at. One client sends, waits and sends again; a server's limit
is found with more clients, not with deeper queues.
"""

from __future__ import annotations
