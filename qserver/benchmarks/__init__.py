"""What measures the product: programs for one room each, and for a whole server.

storage.py, engine.py, durability.py   one room each, `python -m qserver.benchmarks.storage`
sql.py, analytics.py, tpch/            SQL in process, beside sqlite3 and DuckDB
load/                                  `qserver bench`: a load over HTTP on any server
growth/                                how cost grows with rows, connections and the like

`in_process.py` and `printing.py` are what these programs have in common. What clients do, and the
percentiles of their latencies, are in `qserver.workloads`: a service needs them as well.
"""
