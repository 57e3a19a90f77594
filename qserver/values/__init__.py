"""SQL values and their types. Pure: no clock, no randomness, no files.

    text_input  datetime_input          text_output          from text, to text
             └───────┴───── casts ──────────┘                between the types
    types ── admission ── schema                             what a column takes, what a table is
    numerics, floats                                         rounding as PostgreSQL rounds
    keys ── encoding ── comparison                           order, bytes, sameness

A row is a tuple of plain Python values in the order of the columns; a key is a tuple that compares
natively in SQL order; both encode to bytes without loss. Start with `types`, then `keys`.
"""
