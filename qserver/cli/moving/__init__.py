"""`qserver import` from other databases: SQLite, Cloudflare D1, and a PostgreSQL that is running.

    sqlite_text.py     CREATE TABLE of SQLite, read for what its pragmas do not tell
    sqlite_types.py    which type a column gets: declared type and values decide
    sqlite_file.py     a file of SQLite as a Move
    sqlite_script.py   a dump in the SQL of SQLite, as a file
    postgres_source.py    a PostgreSQL as a Move, in one transaction
    postgres_catalog.py   its definitions
    move.py            a Move: definitions, tables with their rows, what is left out
    mover.py           a Move into a database of qserver, in steps that a second run goes on with
    commands.py        the command

Dumps of PostgreSQL are files of statements, which `qserver.cli.transfer` reads.
"""
