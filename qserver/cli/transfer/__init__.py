"""`qserver export` and `qserver import`: a whole database as one file, over HTTP.

snapshot.py   the database at one version, from one streaming request
inserts.py    rows as INSERT statements
writing.py    the file: SQL text or one JSON object per line
sql_text.py   SQL text again, as statements with their lines, and the rows of COPY
reading.py    JSON lines again, likewise
dumps.py      what is special about dumps of PostgreSQL
loading.py    statements into a database, in batches
batches.py    rows into a table, in bulk
commands.py   export, import
"""
