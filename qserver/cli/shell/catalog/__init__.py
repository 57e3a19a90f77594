"""What `\\d` and its kin show, from queries of pg_catalog: the same tables as psql's.

patterns.py   `s*.t?` as conditions      relations.py   \\d name
lists.py      \\dt, \\df, \\l …             sources.py     \\sf, \\sv
"""

from __future__ import annotations
