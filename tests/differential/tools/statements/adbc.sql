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
-- hides server_version_num
SHOW server_version_num;
-- columns: databases of the server
SELECT datname FROM pg_catalog.pg_database;
SELECT nspname FROM pg_catalog.pg_namespace WHERE (nspname !~ '^pg_' OR oid = pg_my_temp_schema()) AND nspname <> 'information_schema';
-- with ["public", "{p,f,t,m,v,r}"]
-- unordered
SELECT c.relname, CASE c.relkind WHEN 'r' THEN 'table' WHEN 'v' THEN 'view' WHEN 'm' THEN 'materialized view' WHEN 't' THEN 'TOAST table' WHEN 'f' THEN 'foreign table' WHEN 'p' THEN 'partitioned table' END AS reltype FROM pg_catalog.pg_class c LEFT JOIN pg_catalog.pg_namespace n ON n.oid = c.relnamespace WHERE n.nspname = $1 AND c.relkind = ANY($2);
-- with ["public", "teams"]
-- unordered
SELECT attr.attname, attr.attnum, pg_catalog.col_description(cls.oid, attr.attnum), typ.typname FROM pg_catalog.pg_attribute AS attr INNER JOIN pg_catalog.pg_class AS cls ON attr.attrelid = cls.oid INNER JOIN pg_catalog.pg_namespace AS nsp ON nsp.oid = cls.relnamespace INNER JOIN pg_catalog.pg_type AS typ ON attr.atttypid = typ.oid WHERE attr.attnum > 0 AND NOT attr.attisdropped AND nsp.nspname LIKE $1 AND cls.relname LIKE $2;
-- with ["public", "teams"]
-- unordered
WITH fk_unnest AS (     SELECT         con.conname,         'FOREIGN KEY' AS contype,         conrelid,         UNNEST(con.conkey) AS conkey,         confrelid,         UNNEST(con.confkey) AS confkey     FROM pg_catalog.pg_constraint AS con     INNER JOIN pg_catalog.pg_class AS cls ON cls.oid = conrelid     INNER JOIN pg_catalog.pg_namespace AS nsp ON nsp.oid = cls.relnamespace     WHERE con.contype = 'f' AND nsp.nspname = $1     AND cls.relname = $2 ), fk_names AS (     SELECT         fk_unnest.conname,         fk_unnest.contype,         fk_unnest.conkey,         fk_unnest.confkey,         attr.attname,         fnsp.nspname AS fschema,         fcls.relname AS ftable,         fattr.attname AS fattname     FROM fk_unnest     INNER JOIN pg_catalog.pg_class AS cls ON cls.oid = fk_unnest.conrelid     INNER JOIN pg_catalog.pg_class AS fcls ON fcls.oid = fk_unnest.confrelid     INNER JOIN pg_catalog.pg_namespace AS fnsp ON fnsp.oid = fcls.relnamespace    INNER JOIN pg_catalog.pg_attribute AS attr ON attr.attnum = fk_unnest.conkey         AND attr.attrelid = fk_unnest.conrelid     LEFT JOIN pg_catalog.pg_attribute AS fattr ON fattr.attnum =  fk_unnest.confkey         AND fattr.attrelid = fk_unnest.confrelid ), fkeys AS (     SELECT         conname,         contype,         ARRAY_AGG(attname ORDER BY conkey) AS colnames,         fschema,         ftable,         ARRAY_AGG(fattname ORDER BY confkey) AS fcolnames     FROM fk_names     GROUP BY         conname,         contype,         fschema,         ftable ), other_constraints AS (     SELECT con.conname, CASE con.contype WHEN 'c' THEN 'CHECK' WHEN 'u' THEN      'UNIQUE' WHEN 'p' THEN 'PRIMARY KEY' END AS contype,     ARRAY_AGG(attr.attname) AS colnames     FROM pg_catalog.pg_constraint AS con      CROSS JOIN UNNEST(conkey) AS conkeys      INNER JOIN pg_catalog.pg_class AS cls ON cls.oid = con.conrelid      INNER JOIN pg_catalog.pg_namespace AS nsp ON nsp.oid = cls.relnamespace      INNER JOIN pg_catalog.pg_attribute AS attr ON attr.attnum = conkeys      AND cls.oid = attr.attrelid      WHERE con.contype IN ('c', 'u', 'p') AND nsp.nspname = $1     AND cls.relname = $2     GROUP BY conname, contype ) SELECT     conname, contype, colnames, fschema, ftable, fcolnames FROM fkeys UNION ALL SELECT     conname, contype, colnames, NULL, NULL, NULL FROM other_constraints;
-- with ["public", "users"]
-- unordered
SELECT attr.attname, attr.attnum, pg_catalog.col_description(cls.oid, attr.attnum), typ.typname FROM pg_catalog.pg_attribute AS attr INNER JOIN pg_catalog.pg_class AS cls ON attr.attrelid = cls.oid INNER JOIN pg_catalog.pg_namespace AS nsp ON nsp.oid = cls.relnamespace INNER JOIN pg_catalog.pg_type AS typ ON attr.atttypid = typ.oid WHERE attr.attnum > 0 AND NOT attr.attisdropped AND nsp.nspname LIKE $1 AND cls.relname LIKE $2;
-- with ["public", "users"]
-- unordered
WITH fk_unnest AS (     SELECT         con.conname,         'FOREIGN KEY' AS contype,         conrelid,         UNNEST(con.conkey) AS conkey,         confrelid,         UNNEST(con.confkey) AS confkey     FROM pg_catalog.pg_constraint AS con     INNER JOIN pg_catalog.pg_class AS cls ON cls.oid = conrelid     INNER JOIN pg_catalog.pg_namespace AS nsp ON nsp.oid = cls.relnamespace     WHERE con.contype = 'f' AND nsp.nspname = $1     AND cls.relname = $2 ), fk_names AS (     SELECT         fk_unnest.conname,         fk_unnest.contype,         fk_unnest.conkey,         fk_unnest.confkey,         attr.attname,         fnsp.nspname AS fschema,         fcls.relname AS ftable,         fattr.attname AS fattname     FROM fk_unnest     INNER JOIN pg_catalog.pg_class AS cls ON cls.oid = fk_unnest.conrelid     INNER JOIN pg_catalog.pg_class AS fcls ON fcls.oid = fk_unnest.confrelid     INNER JOIN pg_catalog.pg_namespace AS fnsp ON fnsp.oid = fcls.relnamespace    INNER JOIN pg_catalog.pg_attribute AS attr ON attr.attnum = fk_unnest.conkey         AND attr.attrelid = fk_unnest.conrelid     LEFT JOIN pg_catalog.pg_attribute AS fattr ON fattr.attnum =  fk_unnest.confkey         AND fattr.attrelid = fk_unnest.confrelid ), fkeys AS (     SELECT         conname,         contype,         ARRAY_AGG(attname ORDER BY conkey) AS colnames,         fschema,         ftable,         ARRAY_AGG(fattname ORDER BY confkey) AS fcolnames     FROM fk_names     GROUP BY         conname,         contype,         fschema,         ftable ), other_constraints AS (     SELECT con.conname, CASE con.contype WHEN 'c' THEN 'CHECK' WHEN 'u' THEN      'UNIQUE' WHEN 'p' THEN 'PRIMARY KEY' END AS contype,     ARRAY_AGG(attr.attname) AS colnames     FROM pg_catalog.pg_constraint AS con      CROSS JOIN UNNEST(conkey) AS conkeys      INNER JOIN pg_catalog.pg_class AS cls ON cls.oid = con.conrelid      INNER JOIN pg_catalog.pg_namespace AS nsp ON nsp.oid = cls.relnamespace      INNER JOIN pg_catalog.pg_attribute AS attr ON attr.attnum = conkeys      AND cls.oid = attr.attrelid      WHERE con.contype IN ('c', 'u', 'p') AND nsp.nspname = $1     AND cls.relname = $2     GROUP BY conname, contype ) SELECT     conname, contype, colnames, fschema, ftable, fcolnames FROM fkeys UNION ALL SELECT     conname, contype, colnames, NULL, NULL, NULL FROM other_constraints;
-- with ["sales", "{p,f,t,m,v,r}"]
-- unordered
SELECT c.relname, CASE c.relkind WHEN 'r' THEN 'table' WHEN 'v' THEN 'view' WHEN 'm' THEN 'materialized view' WHEN 't' THEN 'TOAST table' WHEN 'f' THEN 'foreign table' WHEN 'p' THEN 'partitioned table' END AS reltype FROM pg_catalog.pg_class c LEFT JOIN pg_catalog.pg_namespace n ON n.oid = c.relnamespace WHERE n.nspname = $1 AND c.relkind = ANY($2);
-- with ["users"]
SELECT attname, atttypid FROM pg_catalog.pg_class AS cls INNER JOIN pg_catalog.pg_attribute AS attr ON cls.oid = attr.attrelid INNER JOIN pg_catalog.pg_type AS typ ON attr.atttypid = typ.oid WHERE attr.attnum >= 0 AND cls.oid = $1::regclass::oid ORDER BY attr.attnum;
SELECT CURRENT_SCHEMA();
CREATE TABLE "public" . "ad_t" ("a" int8, "b" text, "d" float8);
-- with ["1"]
select * from ad_t where a > $1;
-- with ["5", "z", "1"]
insert into ad_t values ($1,$2,$3);
