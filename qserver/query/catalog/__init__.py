"""pg_catalog and information_schema: PostgreSQL's catalogs, made of our definitions.

    data/         what PostgreSQL 15 has: relations with their columns, the queries of its views,
                  and the rows of its own types, functions and operators
    relations     a relation as a `Table` without a tree, or as a view of such tables
    sources       which rows a definition has in which table, and how a look-up finds it
    rows_of_…     those rows
    reader        scans of such tables, as a transaction has them for others
    objects       names and numbers of objects: regclass, regtype …
    functions     pg_get_indexdef, format_type, obj_description …
    answers       both, as the context of a statement has them

A view of PostgreSQL is a view here: its query is PostgreSQL's, and runs on our tables. So there is
one description of each relation, and no code for any of the hundred views.

Not done: relations of what only PostgreSQL's server has (locks, replication, progress) are there
with their columns, and empty.
"""
