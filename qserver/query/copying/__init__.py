"""COPY: the statement, its formats, and the way of its rows into a table; for all doors."""
