"""Computes over columns of pages with numpy, instead of row by row.

    program.py       an expression as steps over vectors; says what can be vectors at all
    operations.py    the steps: numpy, with bounds that prove that no row would raise
    grouping.py      keys of GROUP BY as small integers
    aggregates.py    what a chunk adds to the states of its groups
    loading.py       imports the modules with numpy, beside the event loop
    scans.py         tries each chunk, and hands out the rows of those that are refused
    builds.py        right sides of hash joins, kept for vectors and for row code
    joins.py         which rows of a right side the rows of a chunk meet

*A chunk may always be refused*: an overflow that its bounds allow, a zero among its divisors, a
value without a vector. Then the row code takes its rows, and answers or raises as it always does.
So a step computes what row code computes, or refuses; it never raises an error of SQL.

numpy is imported when the first plan uses vectors (`loading`).
"""
