"""Computes over columns of pages with numpy, instead of row by row.

    program.py       compiles an expression to steps over vectors; decides what can be vectorized
    operations.py    the steps: numpy, with bounds that prove that no row would raise
    grouping.py      keys of GROUP BY as small integers
    aggregates.py    adds a chunk to the states of its groups
    loading.py       imports the modules with numpy, beside the event loop
    scans.py         tries each chunk, and yields the rows of refused ones
    builds.py        right sides of hash joins, for vectors and for row code
    joins.py         matches the rows of a chunk with rows of a right side

*A chunk may always be refused*: an overflow that its bounds allow, a zero among its divisors, a
value without a vector. Then row code processes its rows, and answers or raises as always. So a step
computes what row code computes, or refuses; it never raises an error of SQL.

numpy is imported when the first plan uses vectors (`loading`).
"""
