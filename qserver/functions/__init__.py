"""Functions and operators of the dialect, and the resolution of calls.

    resolve            a name and argument types → the function, and the casts of its arguments
      candidates         PostgreSQL's rules of choice      type_categories   groups of types
      placeholders       anyelement and similar            conversions       int4('7') is a cast
    all_functions      all functions of the modules below, by name
    registry           what the compiler must know of a function; signatures: of many types at once
    costs              the steps of a call, before it begins
    context            the environment of an execution: time, randomness, limits, memory

    operators          + - * / % ^ & | # ~              general        GREATEST, random, version
    comparisons        = <> < <= > >=                   typed_comparisons
    series             generate_series of numbers       sequences      nextval, currval, setval
    enums              enum_first, enum_range

    aggregates/        count, sum, statistics, ordered-set aggregates
    arrays/            subscripts, slices, array_… functions
    datetime/          arithmetic, EXTRACT, to_char, to_timestamp, series of timestamps
    json/              json and jsonb
    numbers/           arithmetic, powers, trigonometry, to_char, to_number
    regex/             ~, SIMILAR TO, regexp_…
    text/              strings, LIKE, format, bytea

An implementation works on values that are not NULL and does not know plans or rows. It is correct
if PostgreSQL 15 gives the same text for the same arguments, including digits and errors.
"""
