SET client_encoding = 'UTF8';

select version() like 'PostgreSQL%', current_setting('server_version_num')::int4 > 90600;

-- with ["{\"public\",\"sales\"}"]
WITH
columns AS (
    SELECT
        nc.nspname::name AS table_schema,
        c.relname::name AS table_name,
        a.attname::name AS column_name,
        d.description AS description,
        CASE
          WHEN t.typbasetype  != 0  THEN pg_get_expr(t.typdefaultbin, 0)
          WHEN a.attidentity  = 'd' THEN format('nextval(%L)', seq.objid::regclass)
          WHEN a.attgenerated = 's' THEN null
          ELSE pg_get_expr(ad.adbin, ad.adrelid)::text
        END AS column_default,
        not (a.attnotnull OR t.typtype = 'd' AND t.typnotnull) AS is_nullable,
        CASE
            WHEN t.typtype = 'd' THEN
            CASE
                WHEN bt.typnamespace = 'pg_catalog'::regnamespace THEN format_type(t.typbasetype, NULL::integer)
                ELSE format_type(a.atttypid, a.atttypmod)
            END
            ELSE
            CASE
                WHEN t.typnamespace = 'pg_catalog'::regnamespace THEN format_type(a.atttypid, NULL::integer)
                ELSE format_type(a.atttypid, a.atttypmod)
            END
        END::text AS data_type,
        format_type(a.atttypid, a.atttypmod)::text AS nominal_data_type,
        information_schema._pg_char_max_length(
            information_schema._pg_truetypid(a.*, t.*),
            information_schema._pg_truetypmod(a.*, t.*)
        )::integer AS character_maximum_length,
        COALESCE(bt.oid, t.oid) AS base_type,
        a.attnum::integer AS position
    FROM pg_attribute a
        LEFT JOIN pg_description AS d ON d.objoid = a.attrelid and d.objsubid = a.attnum and d.classoid = 'pg_class'::regclass
        LEFT JOIN pg_attrdef ad ON a.attrelid = ad.adrelid AND a.attnum = ad.adnum
        JOIN pg_class c ON a.attrelid = c.oid
        JOIN pg_namespace nc ON c.relnamespace = nc.oid
        JOIN pg_type t ON a.atttypid = t.oid
        LEFT JOIN pg_depend seq ON seq.refobjid = a.attrelid and seq.refobjsubid = a.attnum and seq.deptype = 'i'
        LEFT JOIN pg_type bt ON t.typtype = 'd' AND t.typbasetype = bt.oid
    WHERE
        NOT pg_is_other_temp_schema(nc.oid)
        AND a.attnum > 0
        AND NOT a.attisdropped
        AND c.relkind in ('r', 'v', 'f', 'm', 'p')
        AND nc.nspname = ANY($1)
),
columns_agg AS (
  SELECT DISTINCT
    info.table_schema AS table_schema,
    info.table_name AS table_name,
    array_agg(row(
      info.column_name, info.description, info.is_nullable::boolean, info.data_type, info.nominal_data_type,
      info.character_maximum_length, info.column_default,
      coalesce(enum_info.vals, '{}')) order by info.position) as columns
  FROM columns info
  LEFT OUTER JOIN (
    SELECT e.enumtypid, array_agg(e.enumlabel ORDER BY e.enumsortorder) AS vals
    FROM pg_type t JOIN pg_enum e ON t.oid = e.enumtypid JOIN pg_namespace n ON n.oid = t.typnamespace
    GROUP BY enumtypid
  ) AS enum_info ON info.base_type = enum_info.enumtypid
  WHERE info.table_schema NOT IN ('pg_catalog', 'information_schema')
  GROUP BY info.table_schema, info.table_name
),
tbl_pk_cols AS (
  SELECT
    r.oid, array_agg(a.attname ORDER BY a.attname) as pk_cols
  FROM pg_class r
  JOIN pg_constraint c ON r.oid = c.conrelid
  JOIN pg_attribute a ON a.attrelid = r.oid AND a.attnum = ANY (c.conkey)
  WHERE
    c.contype in ('p')
    AND r.relkind IN ('r', 'p')
    AND r.relnamespace NOT IN ('pg_catalog'::regnamespace, 'information_schema'::regnamespace)
    AND NOT pg_is_other_temp_schema(r.relnamespace)
    AND NOT a.attisdropped
  GROUP BY r.oid
)
SELECT
  n.nspname AS table_schema,
  c.relname AS table_name,
  d.description AS table_description,
  c.relkind IN ('v','m') as is_view,
  (c.relkind IN ('r','p') OR (c.relkind in ('v','f') AND (pg_relation_is_updatable(c.oid::regclass, TRUE) & 8) = 8)) AS insertable,
  (c.relkind IN ('r','p') OR (c.relkind in ('v','f') AND (pg_relation_is_updatable(c.oid::regclass, TRUE) & 4) = 4)) AS updatable,
  (c.relkind IN ('r','p') OR (c.relkind in ('v','f') AND (pg_relation_is_updatable(c.oid::regclass, TRUE) & 16) = 16)) AS deletable,
  coalesce(tpks.pk_cols, '{}') as pk_cols,
  coalesce(cols_agg.columns, '{}') as columns
FROM pg_class c
JOIN pg_namespace n ON n.oid = c.relnamespace
LEFT JOIN pg_description d on d.objoid = c.oid and d.objsubid = 0 and d.classoid = 'pg_class'::regclass
LEFT JOIN tbl_pk_cols tpks ON c.oid = tpks.oid
LEFT JOIN columns_agg cols_agg ON n.nspname = cols_agg.table_schema AND c.relname = cols_agg.table_name
WHERE c.relkind IN ('v','r','m','f','p')
AND c.relnamespace NOT IN ('pg_catalog'::regnamespace, 'information_schema'::regnamespace)
AND not c.relispartition
ORDER BY table_schema, table_name;

WITH
pks_uniques_cols AS (
  SELECT
    conrelid,
    array_agg(key order by key) as cols
  FROM pg_constraint,
  LATERAL unnest(conkey) AS _(key)
  WHERE
    contype IN ('p', 'u') and
    connamespace <> 'pg_catalog'::regnamespace
  GROUP BY oid, conrelid
)
SELECT
  ns1.nspname AS table_schema,
  tab.relname AS table_name,
  ns2.nspname AS foreign_table_schema,
  other.relname AS foreign_table_name,
  (traint.conrelid = traint.confrelid) AS is_self,
  traint.conname  AS constraint_name,
  column_info.cols_and_fcols,
  (column_info.cols IN (SELECT cols FROM pks_uniques_cols WHERE conrelid = traint.conrelid)) AS one_to_one
FROM pg_constraint traint
JOIN LATERAL (
  SELECT
    array_agg(row(cols.attname, refs.attname) order by ord) AS cols_and_fcols,
    array_agg(cols.attnum order by cols.attnum) AS cols
  FROM unnest(traint.conkey, traint.confkey) WITH ORDINALITY AS _(col, ref, ord)
  JOIN pg_attribute cols ON cols.attrelid = traint.conrelid AND cols.attnum = col
  JOIN pg_attribute refs ON refs.attrelid = traint.confrelid AND refs.attnum = ref
) AS column_info ON TRUE
JOIN pg_namespace ns1 ON ns1.oid = traint.connamespace
JOIN pg_class tab ON tab.oid = traint.conrelid
JOIN pg_class other ON other.oid = traint.confrelid
JOIN pg_namespace ns2 ON ns2.oid = other.relnamespace
WHERE traint.contype = 'f'
 and traint.conparentid = 0
ORDER BY traint.conrelid, traint.conname;

WITH
base_types AS (
  WITH RECURSIVE
  recurse AS (
    SELECT oid, typbasetype, typnamespace AS base_namespace, COALESCE(NULLIF(typbasetype, 0), oid) AS base_type
    FROM pg_type
    UNION
    SELECT t.oid, b.typbasetype, b.typnamespace AS base_namespace, COALESCE(NULLIF(b.typbasetype, 0), b.oid) AS base_type
    FROM recurse t
    JOIN pg_type b ON t.typbasetype = b.oid
  )
  SELECT oid, base_namespace, base_type FROM recurse WHERE typbasetype = 0
)
SELECT count(*) > 300 FROM base_types;

-- differs: the role is none
select set_config('search_path', '"public", "public"', true), set_config('role', 'qserver', true), set_config('request.jwt.claims', '{"role":"web_anon"}', true), set_config('request.method', 'GET', true), set_config('request.path', '/users', true);

WITH pgrst_source AS ( SELECT "public"."users"."id", "public"."users"."name" FROM "public"."users"  WHERE  "public"."users"."id" = '1'   LIMIT '10' OFFSET '0' ) SELECT null::bigint AS total_result_set, pg_catalog.count(_postgrest_t) AS page_total, coalesce(json_agg(_postgrest_t), '[]') AS body, nullif(current_setting('response.headers', true), '') AS response_headers, nullif(current_setting('response.status', true), '') AS response_status, '' AS response_inserted FROM ( SELECT * FROM pgrst_source ) _postgrest_t;

WITH pgrst_source AS ( SELECT "public"."users"."name", COALESCE( "users_members_1"."users_members_1", '[]') AS "members" FROM "public"."users" LEFT JOIN LATERAL ( SELECT json_agg("users_members_1")::jsonb AS "users_members_1" FROM (SELECT "members_1"."role" FROM "public"."members" AS "members_1" WHERE "members_1"."user_id" = "public"."users"."id") AS "users_members_1" ) AS "users_members_1" ON TRUE ORDER BY name) SELECT coalesce(json_agg(_postgrest_t), '[]') FROM ( SELECT * FROM pgrst_source ) _postgrest_t;

WITH pgrst_source AS (INSERT INTO "public"."teams"("title") SELECT pgrst_body."title" FROM (SELECT '[{"title":"api"}]'::json AS json_data) pgrst_payload, LATERAL (SELECT "title" FROM json_to_recordset(pgrst_payload.json_data) AS _("title" character varying(80)) ) pgrst_body RETURNING "public"."teams".*) SELECT '' AS total_result_set, pg_catalog.count(_postgrest_t) AS page_total, coalesce(json_agg(_postgrest_t)->0->>'title', 'null') AS body FROM (SELECT * FROM pgrst_source) _postgrest_t;

WITH pgrst_source AS (UPDATE "public"."teams" SET "title" = "pgrst_update_body"."title" FROM (SELECT '{"title":"b"}'::json AS json_data) pgrst_payload, LATERAL (SELECT "title" FROM json_to_record(pgrst_payload.json_data) AS _("title" text) ) pgrst_update_body WHERE "public"."teams"."title" = 'api' RETURNING 1) SELECT count(*) FROM pgrst_source;

LISTEN "pgrst";

SELECT name, setting FROM pg_settings WHERE name IN ('server_version_num', 'nothing') AND setting::int < 0;

with
role_setting as (
  select setdatabase, unnest(setconfig) as setting from pg_catalog.pg_db_role_setting
  where setrole = CURRENT_USER::regrole::oid and setdatabase in (0, (select oid from pg_catalog.pg_database where datname = CURRENT_CATALOG))
),
kv_settings as (
  select setdatabase, substr(setting, 1, strpos(setting, '=') - 1) as k, substr(setting, strpos(setting, '=') + 1) as v from role_setting
)
select distinct on (key) replace(k, 'pgrst.', '') AS key, v as value from kv_settings, lateral (select k as key) x where k = ANY('{"pgrst.db_schemas"}') order by key, setdatabase desc;

-- unordered
SELECT pn.nspname AS proc_schema, p.proname AS proc_name, d.description AS proc_description, COALESCE(a.args, '{}') AS args, tn.nspname AS schema, COALESCE(comp.relname, t.typname) AS name, p.proretset AS rettype_is_setof, (t.typtype = 'c' or COALESCE(proargmodes::text[] && '{t,b,o}', false)) AS rettype_is_composite, p.provolatile, p.provariadic > 0 as hasvariadic
FROM pg_proc p
LEFT JOIN (SELECT oid, array_agg((COALESCE(name, ''), type::regtype::text, idx <= (pronargs - pronargdefaults), mode) ORDER BY idx) AS args FROM pg_proc, unnest(proargnames, proargtypes, proargmodes) WITH ORDINALITY AS _ (name, type, mode, idx) WHERE type IS NOT NULL GROUP BY oid) a ON a.oid = p.oid
JOIN pg_namespace pn ON pn.oid = p.pronamespace
JOIN pg_type t ON t.oid = p.prorettype
JOIN pg_namespace tn ON tn.oid = t.typnamespace
LEFT JOIN pg_class comp ON comp.oid = t.typrelid
LEFT JOIN pg_description as d ON d.objoid = p.oid
WHERE t.oid <> 'trigger'::regtype AND COALESCE(a.args, '{}') = '{}' AND prokind = 'f' AND p.proname IN ('now', 'pi', 'random', 'version');
