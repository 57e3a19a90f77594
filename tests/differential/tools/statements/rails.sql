SET client_min_messages TO 'warning';

SET standard_conforming_strings = on;

SET intervalstyle = iso_8601;

SET SESSION timezone TO 'UTC';

-- unordered
SELECT t.oid, t.typname FROM pg_type as t WHERE t.typname IN ('int2', 'int4', 'int8', 'oid', 'float4', 'float8', 'numeric', 'bool', 'timestamp', 'timestamptz');

SELECT t.oid, t.typname, t.typelem, t.typdelim, t.typinput, r.rngsubtype, t.typtype, t.typbasetype
FROM pg_type as t
LEFT JOIN pg_range as r ON oid = rngtypid
WHERE
  t.typname IN ('int2', 'int4', 'int8', 'oid', 'float4', 'float8', 'text', 'varchar', 'char', 'name', 'bpchar', 'bool', 'bit', 'varbit', 'date', 'money', 'bytea', 'point', 'hstore', 'json', 'jsonb', 'cidr', 'inet', 'uuid', 'xml', 'tsvector', 'macaddr', 'citext', 'ltree', 'line', 'lseg', 'box', 'path', 'polygon', 'circle', 'numeric', 'interval', 'time', 'timestamp', 'timestamptz')
  OR t.typtype IN ('r', 'e')
  OR t.typinput = 'array_in(cstring,oid,integer)'::regprocedure AND t.oid < 10000
  OR t.typelem != 0 AND (t.oid < 10000 OR t.oid >= 16384) order by t.oid < 10000 desc, t.typname;

SHOW max_identifier_length;

SHOW search_path;

SELECT "schema_migrations"."version" FROM "schema_migrations" ORDER BY "schema_migrations"."version" ASC;

SELECT pg_try_advisory_lock(8603380846846410235);

SELECT c.relname FROM pg_class c LEFT JOIN pg_namespace n ON n.oid = c.relnamespace WHERE n.nspname = ANY (current_schemas(false)) AND c.relname = 'schema_migrations' AND c.relkind IN ('r','p');

CREATE TABLE "schema_migrations" ("version" character varying NOT NULL PRIMARY KEY);

CREATE TABLE "ar_internal_metadata" ("key" character varying NOT NULL PRIMARY KEY, "value" character varying, "created_at" timestamp(6) NOT NULL, "updated_at" timestamp(6) NOT NULL);

BEGIN;

CREATE TABLE "posts" ("id" bigserial primary key, "user_id" bigint NOT NULL, "title" character varying(255) DEFAULT '' NOT NULL, "body" text, "meta" jsonb DEFAULT '{}' NOT NULL, "tags" character varying[] DEFAULT '{}', "price" decimal(8,2), "created_at" timestamp(6) NOT NULL, "updated_at" timestamp(6) NOT NULL);

CREATE INDEX "index_posts_on_user_id" ON "posts" ("user_id");

CREATE UNIQUE INDEX "index_posts_on_lower_title" ON "posts" (lower(title)) WHERE body IS NOT NULL;

ALTER TABLE "posts" ADD CONSTRAINT "fk_rails_5b5ddfd518" FOREIGN KEY ("user_id") REFERENCES "users" ("id") ON DELETE CASCADE;

ALTER TABLE "posts" ADD CONSTRAINT chk_rails_1 CHECK (price > 0) NOT VALID;

ALTER TABLE "posts" VALIDATE CONSTRAINT "chk_rails_1";

INSERT INTO "schema_migrations" ("version") VALUES ('20240101000000') RETURNING "version";

COMMIT;

SELECT pg_advisory_unlock(8603380846846410235);

SELECT a.attname, format_type(a.atttypid, a.atttypmod), pg_get_expr(d.adbin, d.adrelid), a.attnotnull, a.atttypid, a.atttypmod, c.collname, col_description(a.attrelid, a.attnum) AS comment, attidentity AS identity, attgenerated as attgenerated
FROM pg_attribute a
LEFT JOIN pg_attrdef d ON a.attrelid = d.adrelid AND a.attnum = d.adnum
LEFT JOIN pg_type t ON a.atttypid = t.oid
LEFT JOIN pg_collation c ON a.attcollation = c.oid AND a.attcollation <> t.typcollation
WHERE a.attrelid = '"posts"'::regclass AND a.attnum > 0 AND NOT a.attisdropped
ORDER BY a.attnum;

SELECT a.attname FROM (SELECT indrelid, indkey, generate_subscripts(indkey, 1) idx FROM pg_index WHERE indrelid = '"posts"'::regclass AND indisprimary) i JOIN pg_attribute a ON a.attrelid = i.indrelid AND a.attnum = i.indkey[i.idx] ORDER BY i.idx;

SELECT distinct i.relname, d.indisunique, d.indkey, pg_get_indexdef(d.indexrelid), t.oid, pg_catalog.obj_description(i.oid, 'pg_class') AS comment, d.indisvalid, ARRAY(SELECT pg_get_indexdef(d.indexrelid, k + 1, true) FROM generate_subscripts(d.indkey, 1) AS k ORDER BY k) AS columns, d.indnullsnotdistinct
FROM pg_class t
INNER JOIN pg_index d ON t.oid = d.indrelid
INNER JOIN pg_class i ON d.indexrelid = i.oid
LEFT JOIN pg_namespace n ON n.oid = t.relnamespace
WHERE i.relkind IN ('i', 'I') AND d.indisprimary = 'f' AND t.relname = 'users' AND n.nspname = ANY (current_schemas(false))
ORDER BY i.relname;

SELECT t2.oid::regclass::text AS to_table, a1.attname AS column, a2.attname AS primary_key, c.conname AS name, c.confupdtype AS on_update, c.confdeltype AS on_delete, c.convalidated AS valid, c.condeferrable AS deferrable, c.condeferred AS deferred, c.conkey, c.confkey, c.conrelid, c.confrelid
FROM pg_constraint c
JOIN pg_class t1 ON c.conrelid = t1.oid JOIN pg_class t2 ON c.confrelid = t2.oid
JOIN pg_attribute a1 ON a1.attnum = c.conkey[1] AND a1.attrelid = t1.oid
JOIN pg_attribute a2 ON a2.attnum = c.confkey[1] AND a2.attrelid = t2.oid
JOIN pg_namespace t3 ON c.connamespace = t3.oid
WHERE c.contype = 'f' AND t1.relname = 'posts' AND t3.nspname = ANY (current_schemas(false)) AND c.conparentid = 0
ORDER BY c.conname;

SELECT conname, pg_get_constraintdef(c.oid, true) AS constraintdef, c.convalidated AS valid FROM pg_constraint c JOIN pg_class t ON c.conrelid = t.oid JOIN pg_namespace n ON n.oid = c.connamespace WHERE c.contype = 'c' AND t.relname = 'posts' AND n.nspname = ANY (current_schemas(false)) ORDER BY 1;

SELECT c.conname, c.conrelid, c.condeferrable, c.condeferred, c.conkey FROM pg_constraint c JOIN pg_class t ON c.conrelid = t.oid JOIN pg_namespace n ON n.oid = c.connamespace WHERE c.contype = 'u' AND t.relname = 'teams' AND n.nspname = ANY (current_schemas(false));

SELECT type.typname AS name, type.OID AS oid, n.nspname AS schema, array_agg(enum.enumlabel ORDER BY enum.enumsortorder) AS value FROM pg_enum AS enum JOIN pg_type AS type ON (type.oid = enum.enumtypid) JOIN pg_namespace n ON type.typnamespace = n.oid WHERE n.nspname = ANY (current_schemas(false)) GROUP BY type.OID, n.nspname, type.typname;

SELECT extname FROM pg_extension WHERE extname != 'plpgsql';

SELECT attr.attname, nsp.nspname, seq.relname, seq.oid::regclass::text
FROM pg_class seq, pg_attribute attr, pg_depend dep, pg_constraint cons, pg_namespace nsp
WHERE seq.oid = dep.objid AND seq.relkind = 'S' AND attr.attrelid = dep.refobjid AND attr.attnum = dep.refobjsubid AND attr.attrelid = cons.conrelid AND attr.attnum = cons.conkey[1] AND seq.relnamespace = nsp.oid AND cons.contype = 'p' AND dep.classid = 'pg_class'::regclass AND dep.refobjid = '"posts"'::regclass;

SELECT MAX("posts"."id") IS NULL, setval(pg_get_serial_sequence('"posts"', 'id'), COALESCE(MAX(id), 0) + 1, false) FROM "posts";

-- with [1, "hi", "2024-05-05 10:00:00"]
INSERT INTO "posts" ("user_id", "title", "created_at", "updated_at") VALUES ($1, $2, $3, $3) RETURNING "id";

-- with [1, 1]
SELECT "posts".* FROM "posts" WHERE "posts"."user_id" = $1 ORDER BY "posts"."id" ASC LIMIT $2;

-- with ["hi"]
SELECT 1 AS one FROM "posts" WHERE "posts"."title" = $1 LIMIT 1;

INSERT INTO "posts" ("title","user_id","created_at","updated_at") VALUES ('a', 1, CURRENT_TIMESTAMP, CURRENT_TIMESTAMP) ON CONFLICT ("id") DO UPDATE SET updated_at=(CASE WHEN ("posts"."title" IS NOT DISTINCT FROM excluded."title") THEN "posts".updated_at ELSE CURRENT_TIMESTAMP END),"title"=excluded."title" RETURNING "id";

SELECT c.relname FROM pg_class c LEFT JOIN pg_namespace n ON n.oid = c.relnamespace WHERE n.nspname = ANY (current_schemas(false)) AND c.relkind IN ('v','m') ORDER BY 1;

SELECT obj_description((SELECT oid FROM pg_class WHERE relname = 'users' AND relnamespace = 'public'::regnamespace), 'pg_class');

SELECT interval '1 year 2 days 03:04:05', '2024-01-01'::timestamptz;

-- differs: plans have nodes of their own
EXPLAIN (COSTS OFF) SELECT 1 WHERE false;

ALTER TABLE "posts" RENAME COLUMN "body" TO "text";

ALTER TABLE "posts" ALTER COLUMN "price" TYPE numeric(10,3), ALTER COLUMN "price" SET DEFAULT 1.0;

ALTER INDEX "index_posts_on_user_id" RENAME TO "index_posts_on_author";

DROP INDEX CONCURRENTLY "index_posts_on_author";

SELECT datname FROM pg_database WHERE datname = 'nothing';

SELECT pg_encoding_to_char(encoding), datcollate, datctype FROM pg_database WHERE datname = current_database();

DROP TABLE IF EXISTS "posts" CASCADE;
