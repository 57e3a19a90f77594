-- hides version
SELECT version();
-- columns: PostgreSQL 16 has some more of its own
SELECT
    attrelid,
    attname,
    atttypid
FROM
    pg_catalog.pg_attribute
ORDER BY
    attrelid, attnum;
-- columns: PostgreSQL 16 has some more of its own
SELECT oid, typname, typreceive, typbasetype, typrelid, typarray FROM pg_catalog.pg_type WHERE (typreceive != 0 OR typsend != 0) AND typtype != 'r' AND typreceive::TEXT != 'array_recv';
-- columns: PostgreSQL 16 has some more of its own
SELECT oid, typname, typreceive, typbasetype, typrelid, typarray FROM pg_catalog.pg_type WHERE (typreceive != 0 OR typsend != 0) AND typtype != 'r' AND typreceive::TEXT != 'array_recv';
-- hides version
SELECT version();
-- columns: PostgreSQL 16 has some more of its own
SELECT
    attrelid,
    attname,
    atttypid
FROM
    pg_catalog.pg_attribute
ORDER BY
    attrelid, attnum;
SELECT CURRENT_SCHEMA();
DROP TABLE IF EXISTS "public" . "pl_t";
CREATE TABLE "public" . "pl_t" ("a" int8, "b" text, "c" float8);
-- unordered
SELECT t.oid, typarray
FROM pg_type t JOIN pg_namespace ns
    ON typnamespace = ns.oid
WHERE typname = 'hstore';
-- hides version
select pg_catalog.version();
select current_schema();
-- columns: the one level is another
show transaction isolation level;
show standard_conforming_strings;
-- unordered
SELECT pg_catalog.pg_class.relname 
FROM pg_catalog.pg_class JOIN pg_catalog.pg_namespace ON pg_catalog.pg_namespace.oid = pg_catalog.pg_class.relnamespace 
WHERE pg_catalog.pg_class.relname IN ('pl_t2') AND pg_catalog.pg_class.relkind = ANY (ARRAY['r', 'p', 'f', 'v', 'm']) AND pg_catalog.pg_table_is_visible(pg_catalog.pg_class.oid) AND pg_catalog.pg_namespace.nspname != 'pg_catalog';
CREATE TABLE pl_t2 (
	a BIGINT
);
INSERT INTO pl_t2 (a) VALUES (3);
