-- sequelize_auto
SET client_min_messages TO warning;SET TIME ZONE INTERVAL '+00:00' HOUR TO MINUTE;
-- columns: PostgreSQL 16 has some more of its own
WITH ranges AS (  SELECT pg_range.rngtypid, pg_type.typname AS rngtypname,         pg_type.typarray AS rngtyparray, pg_range.rngsubtype    FROM pg_range LEFT OUTER JOIN pg_type ON pg_type.oid = pg_range.rngtypid)SELECT pg_type.typname, pg_type.typtype, pg_type.oid, pg_type.typarray,       ranges.rngtypname, ranges.rngtypid, ranges.rngtyparray  FROM pg_type LEFT OUTER JOIN ranges ON pg_type.oid = ranges.rngsubtype WHERE (pg_type.typtype IN('b', 'e'));
-- unordered
SELECT table_name, table_schema
              FROM information_schema.tables
            WHERE table_type = 'BASE TABLE'
            AND table_schema NOT IN ('pg_catalog', 'information_schema')
            AND table_name != 'spatial_ref_sys'
               AND table_schema = 'public';
-- unordered
SELECT DISTINCT
    tc.constraint_name as constraint_name,
    tc.constraint_type as constraint_type,
    tc.constraint_schema as source_schema,
    tc.table_name as source_table,
    kcu.column_name as source_column,
    CASE WHEN tc.constraint_type = 'FOREIGN KEY' THEN ccu.constraint_schema ELSE null END AS target_schema,
    CASE WHEN tc.constraint_type = 'FOREIGN KEY' THEN ccu.table_name ELSE null END AS target_table,
    CASE WHEN tc.constraint_type = 'FOREIGN KEY' THEN ccu.column_name ELSE null END AS target_column,
    co.column_default as extra,
    co.identity_generation as generation
    FROM information_schema.table_constraints AS tc
    JOIN information_schema.key_column_usage AS kcu
      ON tc.table_schema = kcu.table_schema AND tc.table_name = kcu.table_name AND tc.constraint_name = kcu.constraint_name
    JOIN information_schema.constraint_column_usage AS ccu
      ON ccu.constraint_schema = tc.constraint_schema AND ccu.constraint_name = tc.constraint_name
    JOIN information_schema.columns AS co
      ON co.table_schema = kcu.table_schema AND co.table_name = kcu.table_name AND co.column_name = kcu.column_name
    WHERE tc.table_name = 'teams'
       AND tc.constraint_schema = 'public';
-- unordered
SELECT DISTINCT
    tc.constraint_name as constraint_name,
    tc.constraint_type as constraint_type,
    tc.constraint_schema as source_schema,
    tc.table_name as source_table,
    kcu.column_name as source_column,
    CASE WHEN tc.constraint_type = 'FOREIGN KEY' THEN ccu.constraint_schema ELSE null END AS target_schema,
    CASE WHEN tc.constraint_type = 'FOREIGN KEY' THEN ccu.table_name ELSE null END AS target_table,
    CASE WHEN tc.constraint_type = 'FOREIGN KEY' THEN ccu.column_name ELSE null END AS target_column,
    co.column_default as extra,
    co.identity_generation as generation
    FROM information_schema.table_constraints AS tc
    JOIN information_schema.key_column_usage AS kcu
      ON tc.table_schema = kcu.table_schema AND tc.table_name = kcu.table_name AND tc.constraint_name = kcu.constraint_name
    JOIN information_schema.constraint_column_usage AS ccu
      ON ccu.constraint_schema = tc.constraint_schema AND ccu.constraint_name = tc.constraint_name
    JOIN information_schema.columns AS co
      ON co.table_schema = kcu.table_schema AND co.table_name = kcu.table_name AND co.column_name = kcu.column_name
    WHERE tc.table_name = 'members'
       AND tc.constraint_schema = 'public';
-- unordered
SELECT pk.constraint_type as "Constraint",c.column_name as "Field", c.column_default as "Default",c.is_nullable as "Null", (CASE WHEN c.udt_name = 'hstore' THEN c.udt_name ELSE c.data_type END) || (CASE WHEN c.character_maximum_length IS NOT NULL THEN '(' || c.character_maximum_length || ')' ELSE '' END) as "Type", (SELECT array_agg(e.enumlabel) FROM pg_catalog.pg_type t JOIN pg_catalog.pg_enum e ON t.oid=e.enumtypid WHERE t.typname=c.udt_name) AS "special", (SELECT pgd.description FROM pg_catalog.pg_statio_all_tables AS st INNER JOIN pg_catalog.pg_description pgd on (pgd.objoid=st.relid) WHERE c.ordinal_position=pgd.objsubid AND c.table_name=st.relname) AS "Comment" FROM information_schema.columns c LEFT JOIN (SELECT tc.table_schema, tc.table_name, cu.column_name, tc.constraint_type FROM information_schema.TABLE_CONSTRAINTS tc JOIN information_schema.KEY_COLUMN_USAGE  cu ON tc.table_schema=cu.table_schema and tc.table_name=cu.table_name and tc.constraint_name=cu.constraint_name and tc.constraint_type='PRIMARY KEY') pk ON pk.table_schema=c.table_schema AND pk.table_name=c.table_name AND pk.column_name=c.column_name WHERE c.table_name = 'teams' AND c.table_schema = 'public';
SELECT i.relname AS name, ix.indisprimary AS primary, ix.indisunique AS unique, ix.indkey AS indkey, array_agg(a.attnum) as column_indexes, array_agg(a.attname) AS column_names, pg_get_indexdef(ix.indexrelid) AS definition FROM pg_class t, pg_class i, pg_index ix, pg_attribute a, pg_namespace s WHERE t.oid = ix.indrelid AND i.oid = ix.indexrelid AND a.attrelid = t.oid AND t.relkind = 'r' and t.relname = 'teams' AND s.oid = t.relnamespace AND s.nspname = 'public' GROUP BY i.relname, ix.indexrelid, ix.indisprimary, ix.indisunique, ix.indkey ORDER BY i.relname;
-- unordered
SELECT pk.constraint_type as "Constraint",c.column_name as "Field", c.column_default as "Default",c.is_nullable as "Null", (CASE WHEN c.udt_name = 'hstore' THEN c.udt_name ELSE c.data_type END) || (CASE WHEN c.character_maximum_length IS NOT NULL THEN '(' || c.character_maximum_length || ')' ELSE '' END) as "Type", (SELECT array_agg(e.enumlabel) FROM pg_catalog.pg_type t JOIN pg_catalog.pg_enum e ON t.oid=e.enumtypid WHERE t.typname=c.udt_name) AS "special", (SELECT pgd.description FROM pg_catalog.pg_statio_all_tables AS st INNER JOIN pg_catalog.pg_description pgd on (pgd.objoid=st.relid) WHERE c.ordinal_position=pgd.objsubid AND c.table_name=st.relname) AS "Comment" FROM information_schema.columns c LEFT JOIN (SELECT tc.table_schema, tc.table_name, cu.column_name, tc.constraint_type FROM information_schema.TABLE_CONSTRAINTS tc JOIN information_schema.KEY_COLUMN_USAGE  cu ON tc.table_schema=cu.table_schema and tc.table_name=cu.table_name and tc.constraint_name=cu.constraint_name and tc.constraint_type='PRIMARY KEY') pk ON pk.table_schema=c.table_schema AND pk.table_name=c.table_name AND pk.column_name=c.column_name WHERE c.table_name = 'members' AND c.table_schema = 'public';
SELECT COUNT(0) AS trigger_count
              FROM information_schema.triggers AS t
             WHERE t.event_object_table = 'teams'
                   AND t.event_object_schema = 'public';
-- unordered
SELECT c.column_name, c.data_type, c.udt_name, e.data_type AS element_type,
    (SELECT array_agg(pe.enumlabel) FROM pg_catalog.pg_type pt JOIN pg_catalog.pg_enum pe ON pt.oid=pe.enumtypid
 	    WHERE pt.typname=c.udt_name OR CONCAT('_',pt.typname)=c.udt_name) AS enum_values
    FROM information_schema.columns c LEFT JOIN information_schema.element_types e
     ON ((c.table_catalog, c.table_schema, c.table_name, 'TABLE', c.dtd_identifier)
       = (e.object_catalog, e.object_schema, e.object_name, e.object_type, e.collection_type_identifier))
    WHERE c.table_name = 'Odd Names' AND c.table_schema = 'public';
SELECT i.relname AS name, ix.indisprimary AS primary, ix.indisunique AS unique, ix.indkey AS indkey, array_agg(a.attnum) as column_indexes, array_agg(a.attname) AS column_names, pg_get_indexdef(ix.indexrelid) AS definition FROM pg_class t, pg_class i, pg_index ix, pg_attribute a, pg_namespace s WHERE t.oid = ix.indrelid AND i.oid = ix.indexrelid AND a.attrelid = t.oid AND t.relkind = 'r' and t.relname = 'members' AND s.oid = t.relnamespace AND s.nspname = 'public' GROUP BY i.relname, ix.indexrelid, ix.indisprimary, ix.indisunique, ix.indkey ORDER BY i.relname;
SELECT COUNT(0) AS trigger_count
              FROM information_schema.triggers AS t
             WHERE t.event_object_table = 'members'
                   AND t.event_object_schema = 'public';
-- unordered
SELECT c.column_name, c.data_type, c.udt_name, e.data_type AS element_type,
    (SELECT array_agg(pe.enumlabel) FROM pg_catalog.pg_type pt JOIN pg_catalog.pg_enum pe ON pt.oid=pe.enumtypid
 	    WHERE pt.typname=c.udt_name OR CONCAT('_',pt.typname)=c.udt_name) AS enum_values
    FROM information_schema.columns c LEFT JOIN information_schema.element_types e
     ON ((c.table_catalog, c.table_schema, c.table_name, 'TABLE', c.dtd_identifier)
       = (e.object_catalog, e.object_schema, e.object_name, e.object_type, e.collection_type_identifier))
    WHERE c.table_name = 'users' AND c.table_schema = 'public';
-- zapatos
-- with ["public"]
SELECT $1 as schema
      , table_name AS name
      , lower(table_name) AS lname  -- using a case-insensitive sort, but you can't order by a function in a UNION query
      , CASE table_type WHEN 'VIEW' THEN 'view' WHEN 'FOREIGN' THEN 'fdw' ELSE 'table' END AS type
      , CASE WHEN is_insertable_into = 'YES' THEN true ELSE false END AS insertable
      FROM information_schema.tables
      WHERE table_schema = $1 AND table_type != 'LOCAL TEMPORARY'
      UNION ALL
      SELECT $1 as schema
      , matviewname AS name
      , lower(matviewname) AS lname
      , 'mview'::text AS type
      , false AS insertable
      FROM pg_catalog.pg_matviews
      WHERE schemaname = $1
      ORDER BY lname, name;
-- with ["sales"]
SELECT $1 as schema
      , table_name AS name
      , lower(table_name) AS lname  -- using a case-insensitive sort, but you can't order by a function in a UNION query
      , CASE table_type WHEN 'VIEW' THEN 'view' WHEN 'FOREIGN' THEN 'fdw' ELSE 'table' END AS type
      , CASE WHEN is_insertable_into = 'YES' THEN true ELSE false END AS insertable
      FROM information_schema.tables
      WHERE table_schema = $1 AND table_type != 'LOCAL TEMPORARY'
      UNION ALL
      SELECT $1 as schema
      , matviewname AS name
      , lower(matviewname) AS lname
      , 'mview'::text AS type
      , false AS insertable
      FROM pg_catalog.pg_matviews
      WHERE schemaname = $1
      ORDER BY lname, name;
-- with ["public"]
SELECT
          n.nspname AS schema
        , t.typname AS name
        , e.enumlabel AS value
        FROM pg_catalog.pg_type t
        JOIN pg_catalog.pg_enum e ON t.oid = e.enumtypid
        JOIN pg_catalog.pg_namespace n ON n.oid = t.typnamespace
        WHERE n.nspname = $1
        ORDER BY t.typname ASC, e.enumlabel ASC;
-- with ["sales"]
SELECT
          n.nspname AS schema
        , t.typname AS name
        , e.enumlabel AS value
        FROM pg_catalog.pg_type t
        JOIN pg_catalog.pg_enum e ON t.oid = e.enumtypid
        JOIN pg_catalog.pg_namespace n ON n.oid = t.typnamespace
        WHERE n.nspname = $1
        ORDER BY t.typname ASC, e.enumlabel ASC;
-- with ["grown_ups", "public"]
SELECT
          column_name AS "column"
        , is_nullable = 'YES' AS "isNullable"
        , is_generated = 'ALWAYS' OR identity_generation = 'ALWAYS' AS "isGenerated"
        , column_default IS NOT NULL OR identity_generation = 'BY DEFAULT' AS "hasDefault"
        , column_default::text AS "defaultValue"
        , udt_name AS "udtName"
        , domain_name AS "domainName"
        , d.description AS "description"
        FROM information_schema.columns AS c
        LEFT JOIN pg_catalog.pg_namespace ns ON ns.nspname = c.table_schema
        LEFT JOIN pg_catalog.pg_class cl ON cl.relkind = 'r' AND cl.relname = c.table_name AND cl.relnamespace = ns.oid
        LEFT JOIN pg_catalog.pg_description d ON d.objoid = cl.oid AND d.objsubid = c.ordinal_position
        WHERE c.table_name = $1 AND c.table_schema = $2
        ORDER BY "column";
-- with ["grown_ups", "public"]
SELECT DISTINCT i.indexname
        FROM pg_catalog.pg_indexes i
        JOIN pg_catalog.pg_class c ON c.relname = i.indexname
        JOIN pg_catalog.pg_index idx ON idx.indexrelid = c.oid AND idx.indisunique
        WHERE i.tablename = $1 AND i.schemaname = $2
        ORDER BY i.indexname;
-- with ["lines", "sales"]
SELECT
          column_name AS "column"
        , is_nullable = 'YES' AS "isNullable"
        , is_generated = 'ALWAYS' OR identity_generation = 'ALWAYS' AS "isGenerated"
        , column_default IS NOT NULL OR identity_generation = 'BY DEFAULT' AS "hasDefault"
        , column_default::text AS "defaultValue"
        , udt_name AS "udtName"
        , domain_name AS "domainName"
        , d.description AS "description"
        FROM information_schema.columns AS c
        LEFT JOIN pg_catalog.pg_namespace ns ON ns.nspname = c.table_schema
        LEFT JOIN pg_catalog.pg_class cl ON cl.relkind = 'r' AND cl.relname = c.table_name AND cl.relnamespace = ns.oid
        LEFT JOIN pg_catalog.pg_description d ON d.objoid = cl.oid AND d.objsubid = c.ordinal_position
        WHERE c.table_name = $1 AND c.table_schema = $2
        ORDER BY "column";
-- with ["members", "public"]
SELECT DISTINCT i.indexname
        FROM pg_catalog.pg_indexes i
        JOIN pg_catalog.pg_class c ON c.relname = i.indexname
        JOIN pg_catalog.pg_index idx ON idx.indexrelid = c.oid AND idx.indisunique
        WHERE i.tablename = $1 AND i.schemaname = $2
        ORDER BY i.indexname;
-- pg_structure
-- hides server_version
SHOW server_version;
-- with ["public", "sales", "information\\_schema", "pg\\_%"]
SELECT oid, nspname AS name, obj_description(oid, 'pg_namespace') AS comment FROM pg_namespace WHERE NOT pg_is_other_temp_schema(oid) AND nspname <> 'pg_toast' AND (nspname LIKE $1 OR nspname LIKE $2) AND nspname NOT LIKE $3 AND nspname NOT LIKE $4 ORDER BY nspname;
SELECT oid, nspname AS name, obj_description(oid, 'pg_namespace') AS comment FROM pg_namespace WHERE nspname IN ('pg_catalog') ORDER BY nspname;
-- with ["{2200,{namespace sales},11}"]
-- columns: PostgreSQL 16 has some more of its own
/*
 Query to get custom user defined types (base such as hstore, composite, domain and enum).
 Created by using `psql -d database -U user -E`, combined `\dT+` and `\dD+`.
 See:
 https://www.postgresql.org/docs/current/app-psql.html
 https://www.postgresql.org/docs/current/catalog-pg-type.html
 Modificaitions on top of `dT+`. (Taken from `dD+`)
 SELECT
 - Add: t.oid, t.typrelid, t.typnamespace, t.typtype, t.typndims, t.typnotnull, t.typdefault, pg_catalog.format_type(t.typbasetype, t.typtypmod) as "sql_type",
 - Modify:  Remove pg_catalog.array_to_string() around enum values to return it as an array.
 WHERE
 - Remove: n.nspname <> 'pg_catalog' AND n.nspname <> 'information_schema
 - Remove to see types in other schemas: pg_catalog.pg_type_is_visible(t.oid)
 */
WITH types AS (
  SELECT
    t.oid,
    t.typarray,
    t.typrelid,
    t.typnamespace,
    t.typtype,
    t.typcategory,
    t.typndims,
    t.typnotnull,
    t.typdefault,
    pg_catalog.format_type(t.typbasetype, t.typtypmod) AS "sql_type",
    pg_catalog.format_type(t.oid, NULL) AS "Name",
    t.typname AS "Internal name",
    CASE WHEN t.typrelid != 0 THEN
      CAST('tuple' AS pg_catalog.text)
    WHEN t.typlen < 0 THEN
      CAST('var' AS pg_catalog.text)
    ELSE
      CAST(t.typlen AS pg_catalog.text)
    END AS "Size",
    ARRAY (
      SELECT
        e.enumlabel
      FROM
        pg_catalog.pg_enum e
      WHERE
        e.enumtypid = t.oid
      ORDER BY
        e.enumsortorder) AS "Elements",
      pg_catalog.pg_get_userbyid(t.typowner) AS "Owner",
      pg_catalog.array_to_string(t.typacl, E'\n') AS "Access privileges",
      pg_catalog.obj_description(t.oid, 'pg_type') AS "Description",
      (
        SELECT
          c.relkind
        FROM
          pg_catalog.pg_class c
        WHERE
          c.oid = t.typrelid) AS "Relation Kind"
    FROM
      pg_catalog.pg_type t
    WHERE (t.typrelid = 0
      OR (
        SELECT
          c.relkind IN ('c', 'r', 'v', 'm', 'p') -- https://www.postgresql.org/docs/current/catalog-pg-class.html
        FROM
          pg_catalog.pg_class c
        WHERE
          c.oid = t.typrelid))
      AND NOT EXISTS (
        SELECT
          1
        FROM
          pg_catalog.pg_type el
        WHERE
          el.oid = t.typelem
          AND el.typarray = t.oid)
      ORDER BY
        1,
        2
)
  SELECT
    oid,
    typarray AS "arrayOid",
    typnamespace AS "schemaOid",
    typrelid AS "classOid", -- If this is a composite type (see typtype), then this column points to the pg_class entry that defines the corresponding table
    typtype AS "kind",
    typcategory AS "category",
    typnotnull AS "notNull",
    typdefault AS "default",
    CASE WHEN sql_type = '-' THEN
      NULL
    ELSE
      sql_type
    END AS "sqlType",
    "typndims" AS "arrayDimension",
    "Internal name" AS "name",
    "Elements" AS "values",
    "Description" AS "comment",
	  "Relation Kind" AS "relationKind"
  FROM
    types
  WHERE
    typnamespace = ANY ($1)
  ORDER BY
    typnamespace,
    LOWER("Internal name");
-- with ["{2200,{namespace sales}}"]
-- unordered
SELECT
  a.attrelid AS "parentOid",
  a.atttypid AS "typeOid",
  a.attnum AS "attributeNumber",
  c.relkind AS "parentKind", -- r: table, i: index, S: sequence, t: TOAST table, v: view, m: materialized view, c: composite type, f: foreign table, p: partitioned table, I: partitioned index
  a.attname AS "name",
  pg_get_expr(ad.adbin, ad.adrelid)::information_schema.character_data AS "defaultWithTypeCast",
  a.attnotnull AS "notNull",
  format_type(a.atttypid, atttypmod) AS "sqlType",
  CASE
    WHEN c.relkind = 'v' AND a.attndims = 0 AND right(format_type(a.atttypid, atttypmod), 2) = '[]' THEN 1 -- Cannot find a way to detect array dimensions in views.
    ELSE a.attndims
  END AS "arrayDimension",
  a.attnum AS position,
  d.description AS "comment",
  a.attgenerated <> '' AS "isGenerated"
FROM
  pg_attribute a
  INNER JOIN pg_class c ON a.attrelid = c.oid
  LEFT JOIN pg_attrdef ad ON (a.attrelid = ad.adrelid
      AND a.attnum = ad.adnum)
  LEFT JOIN pg_description d ON (a.attrelid = d.objoid
      AND a.attnum = d.objsubid)
WHERE
  c.relnamespace = ANY ($1)
  AND a.attnum > 0
  AND NOT a.attisdropped
  AND c.relkind IN ('m',
    'r',
    'v',
    'c',
    'p')
ORDER BY
  c.relnamespace,
  LOWER(c.relname),
  a.attnum;
-- with ["{2200,{namespace sales}}"]
-- unordered
SELECT
    pg_proc.oid                                                 AS "oid",
    pg_proc.pronamespace                                        AS "schemaOid",
    pg_proc.proname                                             AS "name",
    pg_proc.prokind                                             AS "kind", -- VERSION 11
    CASE pg_proc.prokind
      WHEN 'a' THEN NULL
      ELSE pg_catalog.pg_get_functiondef(pg_proc.oid)
    END                                                         AS "source",
    pg_language.lanname                                         AS "language",
    pg_proc.procost                                             AS "estimatedCost",
    pg_proc.prorows                                             AS "estimatedRows",
    pg_proc.proleakproof                                        AS "isLeakproof",
    pg_proc.proisstrict                                         AS "isStrict",
    CASE pg_proc.proparallel
      WHEN 's' THEN 'safe'
      WHEN 'u' THEN 'unsafe'
      WHEN 'r' THEN 'restricted'
    END                                                         AS "parallelSafety",
    CASE pg_proc.provolatile
      WHEN 'i' THEN 'immutable'
      WHEN 's' THEN 'stable'
      WHEN 'v' THEN 'volatile'
    END                                                         AS "volatility",
    pg_proc.prorettype                                          AS "returnType",
    pg_proc.proretset                                           AS "returnsSet",
    COALESCE(pg_proc.proallargtypes, proargtypes)               AS "argumentTypes",
    pg_proc.proargnames                                         AS "argumentNames",
    pg_proc.proargmodes                                         AS "argumentModes",
    format('%s(%s)',
      pg_proc.proname,
      replace(pg_proc.proargtypes::text, ' ', ',')
    )                                                           AS "signature",
    pg_catalog.obj_description(pg_proc.oid, 'pg_proc')          AS "comment"
FROM
    pg_catalog.pg_proc
    JOIN pg_catalog.pg_language on pg_language.oid = pg_proc.prolang
WHERE
    pg_proc.pronamespace = ANY ($1)
    -- AND pg_proc.prokind in ('f', 'p', 'w', 'a') -- this is for versions 11 and above
    -- AND pg_proc.probin is null;
-- with ["{2200,{namespace sales}}"]
-- unordered
/*
 Query to retrieve table and views.
 */
SELECT
  c.oid AS "oid",
  c.relnamespace AS "schemaOid",
  c.relkind AS "kind",
  c.relname AS "name",
  pg_catalog.obj_description(c.oid, 'pg_class') AS "comment"
FROM
  pg_class c
WHERE
  c.relkind IN ('r', 'v', 'm', 'p', 'S') -- only tables (r), views (v), materialized views (m), partitioned table (p), sequences (S)
  AND c.relnamespace = ANY ($1)
ORDER BY
  c.relnamespace,
  LOWER(relname);
-- with ["{2200,{namespace sales}}"]
-- columns: PostgreSQL 16 has some more of its own
SELECT
  indexrelid AS "oid",
  ix.indrelid AS "tableOid",
  index_class.relname AS "name",
  ix.indisunique AS "isUnique",
  ix.indisprimary AS "isPrimaryKey",
  ix.indisexclusion AS "isExclusion",
  indkey::int[] AS "columnPositions",
  COALESCE(regexp_split_to_array(pg_get_expr(indexprs, ix.indrelid), ', '), '{}'::text[]) AS "indexExpressions",
  pg_get_expr(indpred, ix.indrelid) AS "partialIndexExpression",
  pg_catalog.obj_description(indexrelid, 'pg_index') AS "comment"
FROM
  pg_index ix
  INNER JOIN pg_class index_class ON index_class.oid = ix.indexrelid --AND index_class.relkind = 'i') -- Indexes only from pg_class, i: indexes
WHERE
  index_class.relnamespace = ANY ($1)
ORDER BY
  ix.indrelid,
  LOWER(index_class.relname);
-- with ["{2200,{namespace sales}}"]
-- unordered
SELECT
  c.conrelid AS "tableOid",
  c.conindid AS "indexOid",
  c.contypid AS "typeOid",
  c.contype AS "kind", -- c: check, f: foreign key, p: primary key, u: unique, t: constraint trigger, x: exclusion constraint
  c.conname AS "name",
  c.conkey::int[] AS "constrainedColumnPositions",
  c.confkey::int[] AS "referencedColumnPositions",
  c.confupdtype AS "onUpdate",
  c.confdeltype AS "onDelete",
  c.confmatchtype AS "matchType",
  c.condeferrable AS "isDeferrable",
  c.condeferred AS "isDeferred",
  pg_get_constraintdef(c.oid) AS "checkConstraintExpression",
  pg_catalog.obj_description(c.oid, 'pg_constraint') AS "comment"
FROM
  pg_constraint c
WHERE
  c.connamespace = ANY ($1)
ORDER BY
  c.connamespace,
  LOWER(c.conname);
