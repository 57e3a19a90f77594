"""Functions and operators of the dialect, and how a call finds its own.

    resolve            a name and argument types → the function, and what to cast arguments to
      candidates         PostgreSQL's rules of choice      type_categories   which types go together
      placeholders       anyelement and its kin            conversions       int4('7') is a cast
    catalogue          everything that the modules below announce, by name
    registry           what the compiler must know of a function; signatures: of many types at once

    operators          + - * / % ^ & | # ~       on     integer_math  float_math  numeric_math
    comparisons        = <> < <= > >=                   typed_comparisons
    like, regexes      LIKE, ~, SIMILAR TO, regexp_…    strings, concatenation, text_format, quoting
    mathematics        round, sqrt, gcd …               numeric_powers, angles, histogram
    number_printing    to_char, to_number               binary: bytea, hashes
    aggregates         statistics, ordered_aggregates   series: generate_series

An implementation works on values that are not NULL and knows nothing of plans or rows. It is right
when PostgreSQL 15 gives the same text for the same arguments: digits, errors and all.
"""
