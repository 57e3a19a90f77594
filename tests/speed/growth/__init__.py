"""How cost grows: with rows, connections, databases, and statements of a transaction.

    __main__.py ─► rows.py, memory.py, branches.py, connections.py, databases.py, transactions.py
                       └─► server.py    a real `qserver serve`: its CPU time, memory and threads
                   curves.py            the data, saved as JSON; `make docs` draws them

Times are CPU time of the server's process, over HTTP, because a shared machine stretches the clock
and not the work. Each point is the best of several batches: what disturbs only ever adds.
"""
