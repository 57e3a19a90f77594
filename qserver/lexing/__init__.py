"""A statement as text, before it is parsed.

    lexer, string_escapes      tokens, and what stands between quotes
    keywords                   the words of the grammar
    literals                   the values of literals
    fingerprint                the statement without its literals: by that plans are found
    value_rows, runs           many rows of VALUES, long lists: data, not syntax

A shell needs no more than this to split and complete statements. Start with `lexer`.
"""
