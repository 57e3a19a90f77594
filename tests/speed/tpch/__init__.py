"""TPC-H: its eight tables, its 22 queries, and a program that measures them beside DuckDB."""
