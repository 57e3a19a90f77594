"""Records the catalog of a running PostgreSQL 15 as the data of `qserver.query.catalog`.

    python -m tests.query.catalog "host=localhost user=postgres dbname=template1"

It writes two sorts of files to `qserver/query/catalog/data`:

    relations.json     the relations of pg_catalog and information_schema: their columns, keys and
                       indexes, and the queries of views
    pg_proc.json.gz    the rows of a table that are PostgreSQL's own, one file for each table

Rows stand in the order in which they were made, as a scan gives them: some programs take the first
type of several. A value is as JSON has it; a regproc is a pair of oid and name. What depends on the
machine (roles, databases, collations of the system) is not recorded.
"""

from __future__ import annotations

import gzip
import json
import re
import sys
from pathlib import Path
from typing import Any, Final

import psycopg

DATA: Final = Path(__file__).parents[3] / "qserver" / "query" / "catalog" / "data"

RELATIONS: Final = """
SELECT c.oid::int8, n.nspname, c.relname, c.relkind,
       CASE WHEN c.relkind = 'v' THEN pg_get_viewdef(c.oid) END
FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace
WHERE n.nspname IN ('pg_catalog', 'information_schema') AND c.relkind IN ('r', 'v')
ORDER BY n.nspname DESC, c.relname"""

COLUMNS: Final = """
SELECT a.attname, coalesce(b.typname, t.typname), a.attnotnull,
       CASE WHEN t.typtype = 'd' THEN t.typname END
FROM pg_attribute a JOIN pg_type t ON t.oid = a.atttypid
LEFT JOIN pg_type b ON t.typtype = 'd' AND b.oid = t.typbasetype
WHERE a.attrelid = %s::oid AND a.attnum > 0 ORDER BY a.attnum"""

KEYS: Final = """
SELECT x.indisprimary, x.indisunique, array(
           SELECT attname::text FROM unnest(x.indkey::int2[]) WITH ORDINALITY k(n, at)
           JOIN pg_attribute a ON a.attrelid = x.indrelid AND a.attnum = k.n ORDER BY k.at)
FROM pg_index x WHERE x.indrelid = %s::oid ORDER BY x.indisprimary DESC, x.indexrelid"""

# Views of what only a server of PostgreSQL has: they have no rows here, and no query.
WITHOUT_ROWS: Final = re.compile(
    r"pg_stat_get_(activity|archiver|bgwriter|progress|recovery|wal|replication|slru|subscription"
    r"|db_)|pg_stat_get_ssl|pg_available_extension|pg_get_backend_memory|pg_config\(|pg_cursor"
    r"|pg_show_all|pg_hba_file|pg_ident_file|pg_lock_status|pg_prepared|pg_get_publication_tables"
    r"|pg_show_replication|pg_get_replication|pg_get_shmem|pg_timezone|pg_mcv_list_items"
    r"|pg_statistic_ext|pg_stat_get_(xact_)?(function|bgwriter)|FROM \(+pg_statistic s"
)

# Tables with rows that every PostgreSQL 15 has, and which of their rows those are.
RECORDED: Final = {
    "pg_aggregate": "true",
    "pg_am": "true",
    "pg_amop": "true",
    "pg_amproc": "true",
    "pg_attribute": "attrelid < 16384 AND attrelid IN ({classes})",
    "pg_cast": "true",
    "pg_class": "oid IN ({classes})",
    "pg_collation": "collname IN ('default', 'C', 'POSIX', 'ucs_basic')",
    "pg_constraint": "connamespace <> 2200",
    "pg_conversion": "true",
    "pg_description": "objoid < 16384",
    "pg_index": "indrelid IN ({classes})",
    "pg_language": "true",
    "pg_opclass": "true",
    "pg_operator": "true",
    "pg_opfamily": "true",
    "pg_proc": "true",
    "pg_range": "true",
    "pg_rewrite": "ev_class IN ({classes})",
    "pg_tablespace": "true",
    "pg_ts_config": "true",
    "pg_ts_config_map": "true",
    "pg_ts_dict": "true",
    "pg_ts_parser": "true",
    "pg_ts_template": "true",
    "pg_type": "true",
}
CLASSES: Final = """
SELECT k.oid FROM pg_class k JOIN pg_namespace s ON s.oid = k.relnamespace
WHERE s.nspname IN ('pg_catalog', 'information_schema')"""

KEYWORDS: Final = """
SELECT word, catcode::text || CASE WHEN barelabel THEN 'l' ELSE 'a' END
FROM pg_get_keywords() ORDER BY word"""

# How a column is read so that JSON can hold it, by the name of its type.
READ_AS: Final = {
    "regproc": "CASE WHEN {0} = 0 THEN NULL ELSE json_build_array({0}::oid::int8, {0}::text) END",
    "oid": "{0}::int8",
    "xid": "{0}::text::int8",
    "_aclitem": "NULL::text",
    "oidvector": "array(SELECT unnest({0})::int8)",
    "_oid": "{0}::int8[]",
    "int2vector": "{0}::int2[]",
    "anyarray": "NULL::text",
}
EXPRESSIONS: Final = {"proargdefaults": "pg_get_expr({0}, 0)", "ev_action": "'<>'::text"}


def recorded_rows(connection: Any, name: str, columns: list[Any]) -> list[list[Any]]:
    texts = []
    for column, kind, *_ in columns:
        form = EXPRESSIONS.get(column) or READ_AS.get(kind) or "{0}"
        texts.append("to_json(" + form.format(f't."{column}"') + ")")
    where = RECORDED[name].format(classes=CLASSES)
    sql = f"SELECT json_build_array({', '.join(texts)}) FROM {name} t WHERE {where} ORDER BY t.ctid"
    return [row for (row,) in connection.execute(sql).fetchall()]


def main(target: str) -> None:
    DATA.mkdir(exist_ok=True)
    with psycopg.connect(target, autocommit=True) as connection:
        connection.execute("SET search_path = pg_catalog")
        relations = []
        for oid, schema, name, kind, query in connection.execute(RELATIONS).fetchall():
            columns = [list(each) for each in connection.execute(COLUMNS, [oid]).fetchall()]
            relation = {"oid": oid, "schema": schema, "name": name, "columns": columns}
            if kind == "v":
                relation["query"] = None if WITHOUT_ROWS.search(query) else query
            else:
                keys = connection.execute(KEYS, [oid]).fetchall()
                relation["key"] = next((names for primary, _, names in keys if primary), [])
                relation["indexes"] = [
                    (names, unique) for primary, unique, names in keys if not primary
                ]
            relations.append(relation)
            if name in RECORDED:
                rows = recorded_rows(connection, name, columns)
                relation["recorded"] = len(rows)
                text = "\n".join(json.dumps(each, ensure_ascii=False) for each in rows)
                packed = gzip.compress(text.encode(), 9, mtime=0)
                (DATA / f"{name}.json.gz").write_bytes(packed)
        words = connection.execute(KEYWORDS).fetchall()
        text = "\n".join(json.dumps(list(each)) for each in words)
        (DATA / "keywords.json.gz").write_bytes(gzip.compress(text.encode(), 9, mtime=0))
        lines = ",\n".join(json.dumps(each, ensure_ascii=False) for each in relations)
        (DATA / "relations.json").write_text(f"[\n{lines}\n]\n", encoding="utf-8")


main(*sys.argv[1:])
