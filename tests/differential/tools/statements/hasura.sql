SELECT current_setting('server_version_num')::integer >= 150000;

SET client_encoding = 'UTF8'; SET client_min_messages TO WARNING;

BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY;

WITH partitions AS (
  SELECT array(
    WITH partitioned_tables AS (SELECT array(SELECT oid FROM pg_class WHERE relkind = 'p') AS parent_tables)
    SELECT child.relname FROM partitioned_tables, pg_catalog.pg_inherits AS i
    INNER JOIN pg_catalog.pg_class AS child ON child.oid = i.inhrelid
    WHERE i.inhparent = ANY (partitioned_tables.parent_tables)
  ) AS names
)
SELECT "table".table_schema, "table".table_name
FROM partitions, information_schema.tables "table"
WHERE "table".table_name <> ALL (partitions.names) AND "table".table_schema NOT IN ('pg_catalog', 'information_schema', 'hdb_catalog')
ORDER BY 1, 2;

SELECT
  schema.nspname AS table_schema,
  "table".relname AS table_name,
  jsonb_build_object(
    'oid', "table".oid :: integer > 0,
    'columns', coalesce(columns.info, '[]'),
    'primary_key', primary_key.info,
    'unique_constraints', coalesce(unique_constraints.info, '[]'),
    'foreign_keys', coalesce(foreign_key_constraints.info, '[]'),
    'view_info', CASE "table".relkind WHEN 'v' THEN jsonb_build_object(
      'is_updatable', ((pg_catalog.pg_relation_is_updatable("table".oid, true) & 4) = 4),
      'is_deletable', ((pg_catalog.pg_relation_is_updatable("table".oid, true) & 16) = 16),
      'is_insertable', ((pg_catalog.pg_relation_is_updatable("table".oid, true) & 8) = 8)
    ) END,
    'description', description.description
  )::json AS info
FROM pg_catalog.pg_class "table"
JOIN pg_catalog.pg_namespace schema ON schema.oid = "table".relnamespace
LEFT JOIN pg_catalog.pg_description description
  ON description.classoid = 'pg_catalog.pg_class'::regclass AND description.objoid = "table".oid AND description.objsubid = 0
LEFT JOIN LATERAL
  ( SELECT
      pg_catalog.jsonb_agg(pg_catalog.jsonb_build_object(
        'name', "column".attname,
        'position', "column".attnum,
        'type', json_build_object('name', (CASE WHEN "array_type".typname IS NULL THEN coalesce(base_type.typname, "type".typname) ELSE "array_type".typname || '[]' END), 'type', "type".typtype),
        'is_nullable', NOT "column".attnotnull,
        'description', pg_catalog.col_description("table".oid, "column".attnum),
        'mutability', jsonb_build_object('is_insertable', NOT (identitytype = 'a' OR generated = 's'), 'is_updatable', NOT (identitytype = 'a' OR generated = 's'))
      ) ORDER BY "column".attnum) AS info
    FROM (SELECT *, attidentity AS identitytype, attgenerated AS generated FROM pg_catalog.pg_attribute) "column"
    LEFT JOIN pg_catalog.pg_type "type" ON "type".oid = "column".atttypid
    LEFT JOIN pg_catalog.pg_type base_type ON "type".typtype = 'd' AND base_type.oid = "type".typbasetype
    LEFT JOIN pg_catalog.pg_type "array_type" ON "array_type".oid = "type".typelem AND "type".typcategory = 'A'
    WHERE "column".attrelid = "table".oid AND "column".attnum > 0 AND NOT "column".attisdropped
  ) columns ON true
LEFT JOIN LATERAL
  ( SELECT jsonb_build_object(
      'constraint', jsonb_build_object('name', class.relname, 'oid_ok', class.oid :: integer > 0),
      'columns', coalesce(columns.info, '[]')) AS info
    FROM pg_catalog.pg_index index
    JOIN pg_catalog.pg_class class ON class.oid = index.indexrelid
    LEFT JOIN LATERAL
      ( SELECT pg_catalog.jsonb_agg("column".attname ORDER BY "column".attname) AS info
        FROM pg_catalog.pg_attribute "column"
        WHERE "column".attrelid = "table".oid AND "column".attnum = ANY (index.indkey) ) AS columns ON true
    WHERE index.indrelid = "table".oid AND index.indisprimary
  ) primary_key ON true
LEFT JOIN LATERAL
  ( SELECT pg_catalog.jsonb_agg(jsonb_build_object('name', class.relname) ORDER BY class.relname) AS info
    FROM pg_catalog.pg_index index
    JOIN pg_catalog.pg_class class ON class.oid = index.indexrelid
    WHERE index.indrelid = "table".oid AND index.indisunique AND NOT index.indisprimary
  ) unique_constraints ON true
LEFT JOIN LATERAL
  ( SELECT jsonb_agg(jsonb_build_object(
      'constraint', jsonb_build_object('name', foreign_key.constraint_name),
      'columns', foreign_key.columns,
      'foreign_table', jsonb_build_object('schema', foreign_key.ref_table_table_schema, 'name', foreign_key.ref_table),
      'foreign_columns', foreign_key.ref_columns) ORDER BY foreign_key.constraint_name) AS info
    FROM (
      SELECT q.table_schema::text, q.table_name::text, q.constraint_name::text,
        min(q.constraint_oid::text) IS NOT NULL AS constraint_oid,
        min(q.ref_table_table_schema::text) AS ref_table_table_schema,
        min(q.ref_table::text) AS ref_table,
        json_object_agg(ac.attname, afc.attname) AS column_mapping,
        json_agg(ac.attname) AS columns, json_agg(afc.attname) AS ref_columns,
        min(q.confupdtype::text) AS on_update, min(q.confdeltype::text) AS on_delete
      FROM ( SELECT ctn.nspname AS table_schema, ct.relname AS table_name, r.conrelid AS table_id,
              r.conname AS constraint_name, r.oid AS constraint_oid, cftn.nspname AS ref_table_table_schema, cft.relname AS ref_table,
              r.confrelid AS ref_table_id, r.confupdtype, r.confdeltype,
              unnest(r.conkey) AS column_id, unnest(r.confkey) AS ref_column_id
            FROM pg_constraint r
              JOIN pg_class ct ON r.conrelid = ct.oid
              JOIN pg_namespace ctn ON ct.relnamespace = ctn.oid
              JOIN pg_class cft ON r.confrelid = cft.oid
              JOIN pg_namespace cftn ON cft.relnamespace = cftn.oid
            WHERE r.contype = 'f'::"char" AND ((ctn.nspname = ANY (current_schemas(false))) OR ctn.nspname = 'sales') ) q
        JOIN pg_attribute ac ON q.column_id = ac.attnum AND q.table_id = ac.attrelid
        JOIN pg_attribute afc ON q.ref_column_id = afc.attnum AND q.ref_table_id = afc.attrelid
      GROUP BY q.table_schema, q.table_name, q.constraint_name
    ) foreign_key
    WHERE foreign_key.table_schema = schema.nspname AND foreign_key.table_name = "table".relname
  ) foreign_key_constraints ON true
WHERE "table".relkind IN ('r', 't', 'v', 'm', 'f', 'p')
  AND schema.nspname IN ('public', 'sales')
ORDER BY 1, 2;

SELECT f.function_schema, f.function_name FROM (SELECT n.nspname AS function_schema, p.proname AS function_name, pd.description, CASE WHEN (p.provariadic = (0)::oid) THEN false ELSE true END AS has_variadic, p.proretset AS returns_set, (SELECT COALESCE(json_agg(json_build_object('name', q.type_name)), '[]') FROM (SELECT pt.typname AS type_name, pat.ordinality FROM unnest(COALESCE(p.proallargtypes, (p.proargtypes)::oid[])) WITH ORDINALITY pat(oid, ordinality) LEFT JOIN pg_type pt ON pt.oid = pat.oid ORDER BY pat.ordinality ASC) q) AS input_arg_types, to_json(COALESCE(p.proargnames, ARRAY[]::text[])) AS input_arg_names FROM pg_proc p JOIN pg_namespace n ON n.oid = p.pronamespace LEFT JOIN pg_description pd ON p.oid = pd.objoid WHERE n.nspname NOT IN ('pg_catalog','information_schema')) f;

COMMIT;

SELECT coalesce(json_agg("root"), '[]') AS "root" FROM (SELECT row_to_json((SELECT "_1_e" FROM (SELECT "_0_root.base"."id" AS "id", "_0_root.base"."name" AS "name") AS "_1_e")) AS "root" FROM (SELECT * FROM "public"."users" WHERE (('true')) ORDER BY id) AS "_0_root.base") AS "_2_root";

SELECT coalesce((json_agg("root") -> 0), 'null') AS "root" FROM (SELECT row_to_json((SELECT "_e" FROM (SELECT "_root.or.teams"."teams" AS "teams", "_root.base"."name" AS "name") AS "_e")) AS "root" FROM (SELECT * FROM "public"."users" WHERE (("public"."users"."id") = (('1')::integer))) AS "_root.base" LEFT OUTER JOIN LATERAL (SELECT coalesce(json_agg("teams"), '[]') AS "teams" FROM (SELECT row_to_json((SELECT "_e" FROM (SELECT "_b"."team_id" AS "team_id") AS "_e")) AS "teams" FROM (SELECT * FROM "public"."members" WHERE (("_root.base"."id") = ("user_id"))) AS "_b") AS "_t") AS "_root.or.teams" ON ('true')) AS "_r";

WITH "users__mutation_result_alias" AS (INSERT INTO "public"."users" ("email", "name") VALUES (('x@y')::varchar, ('X')::text) RETURNING *, CASE WHEN ('true') THEN NULL ELSE NULL END AS "check__constraint"), "users__all_columns_alias" AS (SELECT "email", "name" FROM "users__mutation_result_alias") SELECT json_build_object('affected_rows', (SELECT COUNT(*) FROM "users__all_columns_alias"), 'returning', (SELECT coalesce(json_agg("root"), '[]') AS "root" FROM (SELECT row_to_json((SELECT "_e" FROM (SELECT "_b"."name" AS "name") AS "_e")) AS "root" FROM (SELECT * FROM "users__all_columns_alias") AS "_b") AS "_r"));
