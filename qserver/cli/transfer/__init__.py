"""`qserver export` and `qserver import`: a whole database as one file, over HTTP.

snapshot.py   the database at one version, from one streaming request
inserts.py    rows as INSERT statements
writing.py    the file: SQL text or one JSON object per line
reading.py    the file again, as statements with their lines
loading.py    statements into a database, in batches
commands.py   export, import
"""
