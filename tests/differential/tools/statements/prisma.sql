SET search_path = "public"; SET NAMES 'UTF8';

SELECT EXISTS(SELECT schema_name FROM information_schema.schemata WHERE schema_name = 'public'), version() LIKE 'Postgre%', current_setting('server_version_num')::integer >= 150000 as numeric_version;

-- with ["{public,sales}"]
SELECT namespace.nspname as namespace_name FROM pg_namespace as namespace WHERE namespace.nspname = ANY ( $1 ) ORDER BY namespace_name;

-- with ["{public,sales}"]
SELECT
  tbl.relname AS table_name,
  namespace.nspname as namespace,
  (tbl.relhassubclass and tbl.relkind = 'p') as is_partition,
  (tbl.relhassubclass and tbl.relkind = 'r') as has_subclass,
  tbl.relrowsecurity as has_row_level_security,
  reloptions,
  obj_description(tbl.oid, 'pg_class') as description
FROM pg_class AS tbl
INNER JOIN pg_namespace AS namespace ON namespace.oid = tbl.relnamespace
WHERE
  ( tbl.relkind = 'r' OR tbl.relkind = 'p' )
  AND namespace.nspname = ANY ( $1 )
ORDER BY namespace, table_name;

-- with ["{public,sales}"]
SELECT views.viewname AS view_name, views.definition IS NOT NULL AS view_sql, views.schemaname AS namespace, obj_description(class.oid, 'pg_class') AS description
FROM pg_catalog.pg_views views
INNER JOIN pg_catalog.pg_namespace ns ON views.schemaname = ns.nspname
INNER JOIN pg_catalog.pg_class class ON class.relnamespace = ns.oid AND class.relname = views.viewname
WHERE schemaname = ANY ( $1 ) order by 1;

-- with ["{public,sales}"]
SELECT t.typname as name, e.enumlabel as value, n.nspname as namespace, obj_description(t.oid, 'pg_type') as description
FROM pg_type t
JOIN pg_enum e ON t.oid = e.enumtypid
JOIN pg_catalog.pg_namespace n ON n.oid = t.typnamespace
WHERE n.nspname = ANY ( $1 )
ORDER BY e.enumsortorder, 1;

-- with ["{public,sales}"]
SELECT
    oid.namespace,
    info.table_name,
    info.column_name,
    format_type(att.atttypid, att.atttypmod) as formatted_type,
    info.numeric_precision,
    info.numeric_scale,
    info.numeric_precision_radix,
    info.datetime_precision,
    info.data_type,
    info.udt_schema as type_schema_name,
    info.udt_name as full_data_type,
    pg_get_expr(attdef.adbin, attdef.adrelid) AS column_default,
    info.is_nullable,
    info.is_identity,
    info.character_maximum_length,
    col_description(att.attrelid, ordinal_position) AS description
FROM information_schema.columns info
JOIN pg_attribute att ON att.attname = info.column_name
JOIN (
     SELECT pg_class.oid, relname, pg_namespace.nspname as namespace
     FROM pg_class
     JOIN pg_namespace on pg_namespace.oid = pg_class.relnamespace
     AND pg_namespace.nspname = ANY ( $1 )
     WHERE reltype > 0
    ) as oid on oid.oid = att.attrelid
      AND relname = info.table_name
      AND namespace = info.table_schema
LEFT OUTER JOIN pg_attrdef attdef ON attdef.adrelid = att.attrelid AND attdef.adnum = att.attnum AND table_schema = namespace
WHERE table_schema = ANY ( $1 )
ORDER BY namespace, table_name, ordinal_position;

-- with ["{public,sales}"]
SELECT
    con.oid > 0         AS "con_id",
    att2.attname        AS "child_column",
    cl.relname          AS "parent_table",
    att.attname         AS "parent_column",
    con.confdeltype,
    con.confupdtype,
    rel_ns.nspname      AS "referenced_schema_name",
    conname             AS constraint_name,
    child,
    parent,
    table_name, namespace,
    condeferrable,
    condeferred
FROM (SELECT
            ns.nspname AS "namespace",
            unnest(con1.conkey)                AS "parent",
            unnest(con1.confkey)                AS "child",
            cl.relname                          AS table_name,
            ns.nspname                          AS schema_name,
            generate_subscripts(con1.conkey, 1) AS colidx,
            con1.oid,
            con1.confrelid,
            con1.conrelid,
            con1.conname,
            con1.condeferrable,
            con1.condeferred,
            con1.confdeltype,
            con1.confupdtype
    FROM pg_class cl
            join pg_constraint con1 on con1.conrelid = cl.oid
            join pg_namespace ns on cl.relnamespace = ns.oid
    WHERE
        ns.nspname = ANY ( $1 )
        and con1.contype = 'f'
    ORDER BY colidx
    ) con
        JOIN pg_attribute att on att.attrelid = con.confrelid and att.attnum = con.child
        JOIN pg_class cl on cl.oid = con.confrelid
        JOIN pg_attribute att2 on att2.attrelid = con.conrelid and att2.attnum = con.parent
        JOIN pg_class rel_cl on con.confrelid = rel_cl.oid
        JOIN pg_namespace rel_ns on rel_cl.relnamespace = rel_ns.oid
ORDER BY namespace, table_name, constraint_name, con_id, con.colidx;

-- with ["{public,sales}"]
WITH rawindex AS (
    SELECT
        indrelid,
        indexrelid,
        indisunique,
        indisprimary,
        unnest(indkey) AS indkeyid,
        generate_subscripts(indkey, 1) AS indkeyidx,
        unnest(indclass) AS indclass,
        unnest(indoption) AS indoption
    FROM pg_index
    WHERE
        indpred IS NULL
        AND NOT indisexclusion
        AND array_position(indkey::int2[], 0::int2) IS NULL
)
SELECT
    schemainfo.nspname AS namespace,
    indexinfo.relname AS index_name,
    tableinfo.relname AS table_name,
    columninfo.attname AS column_name,
    rawindex.indisunique AS is_unique,
    rawindex.indisprimary AS is_primary_key,
    rawindex.indkeyidx AS column_index,
    opclass.opcname AS opclass,
    opclass.opcdefault AS opcdefault,
    indexaccess.amname AS index_algo,
    CASE rawindex.indoption & 1
        WHEN 1 THEN 'DESC'
        ELSE 'ASC' END
        AS column_order,
    CASE rawindex.indoption & 2
        WHEN 2 THEN true
        ELSE false END
        AS nulls_first,
    pc.condeferrable AS condeferrable,
    pc.condeferred AS condeferred
FROM
    rawindex
    INNER JOIN pg_class AS tableinfo ON tableinfo.oid = rawindex.indrelid
    INNER JOIN pg_class AS indexinfo ON indexinfo.oid = rawindex.indexrelid
    INNER JOIN pg_namespace AS schemainfo ON schemainfo.oid = tableinfo.relnamespace
    LEFT JOIN pg_attribute AS columninfo
        ON columninfo.attrelid = tableinfo.oid AND columninfo.attnum = rawindex.indkeyid
    INNER JOIN pg_am AS indexaccess ON indexaccess.oid = indexinfo.relam
    LEFT JOIN pg_opclass AS opclass
        ON opclass.oid = rawindex.indclass
    LEFT JOIN pg_constraint pc ON rawindex.indexrelid = pc.conindid AND pc.contype <> 'f'
WHERE schemainfo.nspname = ANY ( $1 )
ORDER BY namespace, table_name, index_name, column_index;

-- with ["{public,sales}"]
SELECT
    sequencename AS sequence_name,
    schemaname AS namespace,
    start_value,
    min_value,
    max_value,
    increment_by,
    cycle,
    cache_size
FROM pg_sequences
WHERE schemaname = ANY ( $1 ) order by 1;

-- with ["{public,sales}"]
SELECT p.proname AS name, n.nspname as namespace, CASE WHEN l.lanname = 'internal' THEN p.prosrc ELSE pg_get_functiondef(p.oid) END as definition
FROM pg_proc p LEFT JOIN pg_namespace n ON p.pronamespace = n.oid LEFT JOIN pg_language l ON p.prolang = l.oid WHERE n.nspname = ANY ( $1 );

-- with ["{public,sales}"]
SELECT conname AS constraint_name, nsp.nspname as namespace, cl.relname as table_name, contype
FROM pg_constraint con JOIN pg_class cl on con.conrelid = cl.oid JOIN pg_namespace nsp on nsp.oid = connamespace WHERE nsp.nspname = ANY ( $1 ) AND contype NOT IN ('p', 'u', 'f') ORDER BY 2, 3, 1;

SELECT ext.extname AS extension_name, ext.extversion AS extension_version, ext.extrelocatable AS extension_relocatable, pn.nspname AS extension_schema FROM pg_extension ext INNER JOIN pg_namespace pn ON ext.extnamespace = pn.oid ORDER BY ext.extname ASC;

SELECT pg_advisory_lock(72707369);

SELECT tbl.relname AS table_name, namespace.nspname AS namespace FROM pg_class AS tbl INNER JOIN pg_namespace AS namespace ON namespace.oid = tbl.relnamespace WHERE tbl.relkind = 'r' AND namespace.nspname = 'public' AND tbl.relname = '_prisma_migrations';

CREATE TABLE _prisma_migrations (
    id                      VARCHAR(36) PRIMARY KEY NOT NULL,
    checksum                VARCHAR(64) NOT NULL,
    finished_at             TIMESTAMPTZ,
    migration_name          VARCHAR(255) NOT NULL,
    logs                    TEXT,
    rolled_back_at          TIMESTAMPTZ,
    started_at              TIMESTAMPTZ NOT NULL DEFAULT now(),
    applied_steps_count     INTEGER NOT NULL DEFAULT 0
);

INSERT INTO _prisma_migrations (id, checksum, started_at, migration_name) VALUES ('a', 'b', now(), '0_init');

UPDATE _prisma_migrations SET finished_at = now(), applied_steps_count = applied_steps_count + 1 WHERE id = 'a';

SELECT id, checksum, migration_name, logs, rolled_back_at, applied_steps_count FROM _prisma_migrations ORDER BY started_at ASC;

SELECT pg_advisory_unlock(72707369);

CREATE TYPE "Role" AS ENUM ('USER', 'ADMIN');

CREATE TABLE "Account" ("id" TEXT NOT NULL, "role" "Role" NOT NULL DEFAULT 'USER', "roles" "Role"[] DEFAULT ARRAY[]::"Role"[], "balance" DECIMAL(65,30) NOT NULL DEFAULT 0, "data" JSONB, "createdAt" TIMESTAMP(3) NOT NULL DEFAULT CURRENT_TIMESTAMP, CONSTRAINT "Account_pkey" PRIMARY KEY ("id"));

BEGIN;

CREATE TYPE "Role_new" AS ENUM ('USER', 'OWNER');

ALTER TABLE "Account" ALTER COLUMN "role" DROP DEFAULT;

ALTER TABLE "Account" ALTER COLUMN "role" TYPE "Role_new" USING ("role"::text::"Role_new");

ALTER TYPE "Role" RENAME TO "Role_old";

ALTER TYPE "Role_new" RENAME TO "Role";

ALTER TABLE "Account" ALTER COLUMN "role" SET DEFAULT 'USER';

COMMIT;

SELECT "public"."users"."id", "public"."users"."email", "public"."users"."feels"::text FROM "public"."users" WHERE ("public"."users"."email" = 'ada@example.org' AND 1=1) LIMIT 1 OFFSET 0;

SELECT "t0"."id", "t0_members"."__prisma_data__" AS "members" FROM "public"."users" AS "t0" LEFT JOIN LATERAL (SELECT COALESCE(JSONB_AGG("__prisma_data__"), '[]') AS "__prisma_data__" FROM (SELECT "t3"."__prisma_data__" FROM (SELECT JSONB_BUILD_OBJECT('role', "t2"."role") AS "__prisma_data__" FROM (SELECT "t1".* FROM "public"."members" AS "t1" WHERE "t0"."id" = "t1"."user_id") AS "t2") AS "t3") AS "t4") AS "t0_members" ON TRUE ORDER BY 1;
