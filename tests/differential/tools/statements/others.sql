-- pgcli
SELECT n.nspname schema_name, c.relname table_name FROM pg_catalog.pg_class c LEFT JOIN pg_catalog.pg_namespace n ON n.oid = c.relnamespace WHERE c.relkind = ANY('{r,p,f}') AND n.nspname != 'pg_catalog' AND n.nspname != 'information_schema' ORDER BY 1,2;

SELECT nsp.nspname schema_name, cls.relname table_name, att.attname column_name, att.atttypid::regtype::text type_name, att.atthasdef AS has_default, pg_catalog.pg_get_expr(def.adbin, def.adrelid, true) as default
FROM pg_catalog.pg_attribute att INNER JOIN pg_catalog.pg_class cls ON att.attrelid = cls.oid INNER JOIN pg_catalog.pg_namespace nsp ON cls.relnamespace = nsp.oid LEFT OUTER JOIN pg_attrdef def ON def.adrelid = att.attrelid AND def.adnum = att.attnum
WHERE cls.relkind = ANY('{r,p,v,f,m}') AND NOT att.attisdropped AND att.attnum > 0 AND nspname IN ('public', 'sales') ORDER BY 1, 2, att.attnum;

SELECT s_p.nspname AS parentschema, t_p.relname AS parenttable, unnest((select array_agg(attname ORDER BY i) from (select unnest(confkey) as attnum, generate_subscripts(confkey, 1) as i) x JOIN pg_catalog.pg_attribute c USING(attnum) WHERE c.attrelid = fk.confrelid)) AS parentcolumn, s_c.nspname AS childschema, t_c.relname AS childtable, unnest((select array_agg(attname ORDER BY i) from (select unnest(conkey) as attnum, generate_subscripts(conkey, 1) as i) x JOIN pg_catalog.pg_attribute c USING(attnum) WHERE c.attrelid = fk.conrelid)) AS childcolumn
FROM pg_catalog.pg_constraint fk JOIN pg_catalog.pg_class t_p ON t_p.oid = fk.confrelid JOIN pg_catalog.pg_namespace s_p ON s_p.oid = t_p.relnamespace JOIN pg_catalog.pg_class t_c ON t_c.oid = fk.conrelid JOIN pg_catalog.pg_namespace s_c ON s_c.oid = t_c.relnamespace WHERE fk.contype = 'f' ORDER BY 2, 5, 6;

SELECT n.nspname schema_name, t.typname type_name FROM pg_catalog.pg_type t INNER JOIN pg_catalog.pg_namespace n ON n.oid = t.typnamespace WHERE ( t.typrelid = 0 OR ( SELECT c.relkind = 'c' FROM pg_catalog.pg_class c WHERE c.oid = t.typrelid ) ) AND NOT EXISTS( SELECT 1 FROM pg_catalog.pg_type el WHERE el.oid = t.typelem AND el.typarray = t.oid ) AND n.nspname <> 'pg_catalog' AND n.nspname <> 'information_schema' ORDER BY 1, 2;

-- differs: arrays count from 1, also those made of vectors
SELECT n.nspname schema_name, p.proname func_name, p.proargnames, COALESCE(proallargtypes::regtype[], proargtypes::regtype[])::text[], p.proargmodes, prorettype::regtype::text return_type, p.prokind = 'a' is_aggregate, p.prokind = 'w' is_window, p.proretset is_set_returning, d.deptype = 'e' is_extension, pg_get_expr(proargdefaults, 0) AS arg_defaults
FROM pg_catalog.pg_proc p INNER JOIN pg_catalog.pg_namespace n ON n.oid = p.pronamespace LEFT JOIN pg_depend d ON d.objid = p.oid and d.deptype = 'e' WHERE p.prorettype::regtype != 'trigger'::regtype AND p.proname IN ('json_each', 'make_interval', 'jsonb_path_query', 'rank') ORDER BY 1, 2, 4;

-- pgx, sqlc, sqlx
select oid, typname, typtype, typelem, typarray, typrelid from pg_type where typname in ('text', 'jsonb', '_int4', 'record') order by 1;

SELECT TRUE FROM pg_type WHERE oid = {type mood} AND typtype = 'e';

SELECT attname, atttypid FROM pg_attribute WHERE attrelid = (SELECT typrelid FROM pg_type WHERE typname = 'users') AND attnum > 0 AND NOT attisdropped ORDER BY attnum;

SELECT oid::regtype::text, typname, typcategory, typtype, typrelid > 0, typelem, typbasetype FROM pg_catalog.pg_type WHERE oid = {type sales.state};

SELECT array(SELECT CASE attnotnull WHEN true THEN false ELSE true END FROM pg_attribute WHERE attrelid = {class users} AND attnum IN (1, 4) ORDER BY attnum) AS nullable;

SELECT enumlabel FROM pg_catalog.pg_enum WHERE enumtypid = {type mood} ORDER BY enumsortorder;

-- ecto, diesel
SELECT t.oid, t.typname, t.typsend, t.typreceive, t.typoutput, t.typinput, coalesce(d.typelem, t.typelem), coalesce(r.rngsubtype, 0), ARRAY (SELECT a.atttypid FROM pg_attribute AS a WHERE a.attrelid = t.typrelid AND a.attnum > 0 AND NOT a.attisdropped ORDER BY a.attnum)
FROM pg_type AS t LEFT JOIN pg_type AS d ON t.typbasetype = d.oid LEFT JOIN pg_range AS r ON r.rngtypid = t.oid OR r.rngmultitypid = t.oid OR (t.typbasetype <> 0 AND r.rngtypid = t.typbasetype)
WHERE (t.typrelid = 0) AND (t.typelem = 0 OR NOT EXISTS (SELECT 1 FROM pg_catalog.pg_type s WHERE s.typrelid != 0 AND s.oid = t.typelem)) AND t.typname IN ('mood', '_mood', 'int4', '_text', 'int4range', 'uuid') ORDER BY 2;

CREATE TABLE IF NOT EXISTS "schema_migrations" ("version" bigint, "inserted_at" timestamp(0), PRIMARY KEY ("version"));

LOCK TABLE "schema_migrations" IN SHARE UPDATE EXCLUSIVE MODE;

SELECT s0."version"::bigint FROM "schema_migrations" AS s0 FOR UPDATE;

-- with ["x", 3]
SELECT u0."id" FROM "users" AS u0 WHERE (u0."name" = ANY(string_to_array($1, ','))) LIMIT $2;

CREATE TABLE IF NOT EXISTS __diesel_schema_migrations (version VARCHAR(50) PRIMARY KEY NOT NULL, run_on TIMESTAMP NOT NULL DEFAULT CURRENT_TIMESTAMP);

SELECT "information_schema"."columns"."column_name", "information_schema"."columns"."udt_name", "information_schema"."columns"."udt_schema", "information_schema"."columns"."is_nullable", "information_schema"."columns"."character_maximum_length", "information_schema"."columns"."domain_name" FROM "information_schema"."columns" WHERE "table_name" = 'users' AND "table_schema" = 'public' ORDER BY "ordinal_position";

-- jOOQ
select "pg_catalog"."pg_class"."relname", "information_schema"."tables"."table_type", 'r' = "pg_catalog"."pg_class"."relkind" from "pg_catalog"."pg_class" join "pg_catalog"."pg_namespace" on "pg_catalog"."pg_namespace"."oid" = "pg_catalog"."pg_class"."relnamespace" join "information_schema"."tables" on ("information_schema"."tables"."table_schema", "information_schema"."tables"."table_name") = ("pg_catalog"."pg_namespace"."nspname", "pg_catalog"."pg_class"."relname") where "nspname" in ('public', 'sales') order by 1;

select "kcu"."table_schema", "kcu"."table_name", "kcu"."column_name", "kcu"."constraint_name", "kcu"."position_in_unique_constraint", "rc"."match_option", "rc"."update_rule", "rc"."delete_rule", "rc"."unique_constraint_name" from information_schema.key_column_usage kcu join information_schema.referential_constraints rc using (constraint_schema, constraint_name) order by 2, 4, "kcu"."ordinal_position";

select r.routine_schema, r.routine_name, r.specific_name, r.data_type, r.routine_type from information_schema.routines r where r.routine_schema in ('public') order by 1, 2;

select a.attribute_name, u.user_defined_type_name from information_schema.attributes a full join information_schema.user_defined_types u on a.udt_name = u.user_defined_type_name;

select s.sequence_schema, s.sequence_name, s.data_type, s.numeric_precision, s.start_value, s.minimum_value, s.maximum_value, s.increment, s.cycle_option from information_schema.sequences s order by 1, 2;

select constraint_name, check_clause from information_schema.check_constraints where constraint_name not like '%not_null' and constraint_schema in ('public', 'sales') order by 1;

select table_name, view_definition is not null, check_option, is_updatable, is_insertable_into from information_schema.views where table_schema in ('public', 'sales') order by 1;

select domain_name from information_schema.domains where domain_schema = 'public';

select grantee, table_name, privilege_type from information_schema.role_table_grants where table_name = 'teams' order by 3;

select table_name, column_name, ordinal_position, position_in_unique_constraint from information_schema.key_column_usage where table_schema = 'sales' order by 1, constraint_name, 3;

select view_name, table_name, column_name from information_schema.view_column_usage where view_schema = 'public' order by 1, 2, 3;

select * from information_schema.view_table_usage where view_schema = 'public' order by table_name;

select constraint_name, table_name, column_name from information_schema.constraint_column_usage where table_schema = 'public' order by 1, 2, 3;

select element_types.data_type, object_name, collection_type_identifier from information_schema.element_types where object_schema = 'public' order by 2, 3;

select trigger_name from information_schema.triggers;

select * from information_schema.enabled_roles where role_name = current_user;

-- hides schema_owner
select catalog_name, schema_name, schema_owner from information_schema.schemata where schema_name in ('sales', 'pg_catalog', 'information_schema') order by 2;

-- differs: the features of the standard are not listed
select feature_name, is_supported from information_schema.sql_features where feature_id = 'E011' and sub_feature_id = '';

-- airbyte, debezium, stitch
SELECT nspname || '.' || relname AS t, pg_relation_size(C.oid) >= 0 FROM pg_class C LEFT JOIN pg_namespace N ON (N.oid = C.relnamespace) WHERE nspname IN ('public', 'sales') AND relkind = 'r' ORDER BY 1;

-- columns: positions of the log
SELECT pg_current_wal_lsn(), CASE WHEN pg_is_in_recovery() THEN pg_last_wal_receive_lsn() ELSE pg_current_wal_lsn() END;

-- differs: a column of PostgreSQL 16
SELECT * FROM pg_replication_slots WHERE slot_name = 'airbyte_slot' AND plugin = 'pgoutput' AND database = 'main';

-- columns: transactions of the server
-- differs: there are no snapshots of transactions
SELECT CASE WHEN pg_is_in_recovery() THEN txid_snapshot_xmin(txid_current_snapshot()) ELSE txid_current() END AS a, (SELECT oldest_xid FROM pg_control_checkpoint() LIMIT 0) IS NULL AS b;

SHOW wal_level;

SELECT COUNT(1) FROM pg_publication WHERE pubname = 'airbyte_publication';

SELECT schemaname, tablename FROM pg_publication_tables WHERE pubname = 'x';

select relreplident::text from pg_catalog.pg_class c left join pg_catalog.pg_namespace n on c.relnamespace=n.oid where n.nspname='public' and c.relname='users';

SELECT r.rolcanlogin AS rolcanlogin, r.rolreplication AS rolreplication, CAST(array_position(ARRAY(SELECT b.rolname FROM pg_catalog.pg_auth_members m JOIN pg_catalog.pg_roles b ON (m.roleid = b.oid) WHERE m.member = r.oid), 'rds_superuser') AS BOOL) IS TRUE AS aws_superuser FROM pg_roles r WHERE r.rolname = current_user;

SELECT c.relname, a.attname, format_type(a.atttypid, a.atttypmod), t.typtype, information_schema._pg_char_max_length(a.atttypid, a.atttypmod), information_schema._pg_numeric_precision(a.atttypid, a.atttypmod), information_schema._pg_numeric_scale(a.atttypid, a.atttypmod), information_schema._pg_datetime_precision(a.atttypid, a.atttypmod) FROM pg_attribute a JOIN pg_class c ON c.oid = a.attrelid JOIN pg_type t ON t.oid = a.atttypid WHERE c.oid = {class users} AND a.attnum > 0 ORDER BY a.attnum;

-- dbt
select current_database();

select distinct nspname from pg_namespace where nspname in ('public', 'sales') order by 1;

select 'main' as database, tablename as name, schemaname as schema, 'table' as type from pg_tables where schemaname ilike 'sales'
union all
select 'main' as database, viewname as name, schemaname as schema, 'view' as type from pg_views where schemaname ilike 'sales'
union all
select 'main' as database, matviewname as name, schemaname as schema, 'materialized_view' as type from pg_matviews where schemaname ilike 'sales' order by 2;

with relation as (
  select pg_rewrite.ev_class as class, pg_rewrite.oid as id from pg_rewrite
),
class as (
  select oid as id, relname as name, relnamespace as schema, relkind as kind from pg_class
),
dependency as (
  select distinct pg_depend.objid as id, pg_depend.refobjid as ref from pg_depend
),
schema as (
  select pg_namespace.oid as id, pg_namespace.nspname as name from pg_namespace where nspname != 'information_schema' and nspname not like 'pg\_%'
),
referenced as (
  select relation.id AS id, referenced_class.name, referenced_class.schema, referenced_class.kind
  from relation join class as referenced_class on relation.class=referenced_class.id where referenced_class.kind in ('r', 'v', 'm')
),
relationships as (
  select referenced.name as referenced_name, referenced.schema as referenced_schema_id, dependent_class.name as dependent_name, dependent_class.schema as dependent_schema_id, referenced.kind as kind
  from referenced join dependency on referenced.id=dependency.id join class as dependent_class on dependency.ref=dependent_class.id
  where (referenced.name != dependent_class.name or referenced.schema != dependent_class.schema)
)
select referenced_schema.name as referenced_schema, relationships.referenced_name as referenced_name, dependent_schema.name as dependent_schema, relationships.dependent_name as dependent_name
from relationships join schema as dependent_schema on relationships.dependent_schema_id=dependent_schema.id join schema as referenced_schema on relationships.referenced_schema_id=referenced_schema.id
group by referenced_schema, referenced_name, dependent_schema, dependent_name order by referenced_schema, referenced_name, dependent_schema, dependent_name;

create temporary table "model__dbt_tmp" as (select id, name from users);

select column_name, data_type, character_maximum_length, numeric_precision, numeric_scale from INFORMATION_SCHEMA.columns where table_name = 'model__dbt_tmp' order by ordinal_position;

create table "main"."public"."model__dbt_new" as (select id, name, current_timestamp as at from users);

alter table "main"."public"."model__dbt_new" rename to "model";

drop table if exists "main"."public"."model__dbt_backup" cascade;

create index if not exists "model_idx" on "main"."public"."model" using hash (id);

comment on table "main"."public"."model" is $dbt_comment_literal_block$A 'model'$dbt_comment_literal_block$;

-- supabase's postgres-meta, retool
SELECT c.oid :: int8 > 0 AS id, nc.nspname AS schema, c.relname AS name, c.relrowsecurity AS rls_enabled, c.relforcerowsecurity AS rls_forced, CASE WHEN c.relreplident = 'd' THEN 'DEFAULT' WHEN c.relreplident = 'i' THEN 'INDEX' WHEN c.relreplident = 'f' THEN 'FULL' ELSE 'NOTHING' END AS replica_identity, pg_total_relation_size(format('%I.%I', nc.nspname, c.relname)) :: int8 >= 0 AS bytes, pg_size_pretty(pg_total_relation_size(format('%I.%I', nc.nspname, c.relname))) IS NOT NULL AS size, obj_description(c.oid) AS comment, coalesce(pk.primary_keys, '[]') as primary_keys
FROM pg_namespace nc JOIN pg_class c ON nc.oid = c.relnamespace
left join (select table_id, jsonb_agg(jsonb_build_object('schema', schema, 'table_name', table_name, 'name', name) order by name) as primary_keys from (select n.nspname as schema, c.relname as table_name, a.attname as name, c.oid :: int8 as table_id from pg_index i, pg_class c, pg_attribute a, pg_namespace n where i.indrelid = c.oid and c.relnamespace = n.oid and a.attrelid = c.oid and a.attnum = any (i.indkey) and i.indisprimary) as pks group by table_id) as pk on pk.table_id = c.oid
WHERE c.relkind IN ('r', 'p') AND NOT pg_is_other_temp_schema(nc.oid) AND (pg_has_role(c.relowner, 'USAGE') OR has_table_privilege(c.oid, 'SELECT, INSERT, UPDATE, DELETE, TRUNCATE, REFERENCES, TRIGGER') OR has_any_column_privilege(c.oid, 'SELECT, INSERT, UPDATE, REFERENCES')) AND nc.nspname = 'sales' ORDER BY 3;

select n.nspname as schema, t.typname as name, format_type(t.oid, null) as format, coalesce(t_enums.enums, '[]') as enums, obj_description(t.oid, 'pg_type') as comment from pg_type t left join pg_namespace n on n.oid = t.typnamespace left join (select enumtypid, jsonb_agg(enumlabel order by enumsortorder) as enums from pg_enum group by enumtypid) as t_enums on t_enums.enumtypid = t.oid where (t.typrelid = 0) and t.typtype = 'e' order by 1, 2;

with f as (select * from pg_proc where pronamespace::regnamespace::text = 'pg_catalog' and proname = 'lpad') select f.proname as name, l.lanname as language, case when l.lanname = 'internal' then '' else f.prosrc end as definition, coalesce(f_args.args, '[]') as args, pg_get_function_arguments(f.oid) as argument_types, pg_get_function_identity_arguments(f.oid) as identity_argument_types, f.prorettype as return_type_id, pg_get_function_result(f.oid) as return_type, nullif(rt.typrelid, 0) as return_type_relation_id, f.proretset as is_set_returning_function, case when f.provolatile = 'i' then 'IMMUTABLE' when f.provolatile = 's' then 'STABLE' end as behavior, f.prosecdef as security_definer, f_config.config_params as config_params from f left join pg_namespace n on f.pronamespace = n.oid left join pg_language l on f.prolang = l.oid left join pg_type rt on rt.oid = f.prorettype left join (select oid, jsonb_object_agg(param, value) filter (where param is not null) as config_params from (select oid, (string_to_array(unnest(proconfig), '='))[1] as param, (string_to_array(unnest(proconfig), '='))[2] as value from f) as t group by oid) f_config on f_config.oid = f.oid left join (select oid, jsonb_agg(jsonb_build_object('mode', t2.mode, 'name', name, 'type_id', type_id, 'has_default', has_default)) as args from (select oid, unnest(arg_modes) as mode, unnest(arg_names) as name, unnest(arg_types)::int8 as type_id, unnest(arg_has_defaults) as has_default from (select oid, string_to_array(array_to_string(proargtypes, ' '), ' ')::int8[] as arg_types, coalesce(proargmodes, array_fill('i'::text, array[coalesce(array_length(proallargtypes, 1), array_length(proargtypes, 1))])) as arg_modes, coalesce(proargnames, array_fill(''::text, array[coalesce(array_length(proallargtypes, 1), array_length(proargtypes, 1))])) as arg_names, array_fill(false, array[1]) as arg_has_defaults from f) as t1) as t2 group by oid) f_args on f_args.oid = f.oid order by 5;

-- what all of them send
SET lock_timeout = '5s'; SET statement_timeout = '1min'; SET idle_in_transaction_session_timeout = 0;

SHOW statement_timeout;

SHOW lock_timeout;

SHOW integer_datetimes;

SHOW server_encoding;

SHOW DateStyle;

SHOW default_transaction_read_only;

-- differs: PostgreSQL 16 has it no more
SHOW lc_collate;

SHOW is_superuser;

SET bytea_output = 'escape'; SELECT '\x00ff'::bytea;

SET bytea_output = 'hex';

SET DateStyle = 'ISO, MDY';

SET plan_cache_mode = force_custom_plan; SET jit = off; SET enable_seqscan = off; SET work_mem = '64MB'; SET row_security = off; SET synchronous_commit = off; SET max_parallel_workers_per_gather = 0;

SHOW work_mem;

RESET ALL;

SELECT current_user, session_user, current_role, user, current_catalog, current_schema;

SELECT inet_server_port() IS NOT NULL OR true, pg_postmaster_start_time() IS NOT NULL, pg_conf_load_time() IS NOT NULL;

SELECT has_table_privilege('users', 'SELECT'), has_table_privilege(current_user, 'users', 'INSERT'), has_schema_privilege('public', 'CREATE'), has_database_privilege(current_database(), 'CONNECT'), has_column_privilege('users', 'id', 'SELECT'), has_sequence_privilege('numbers', 'USAGE'), pg_has_role('pg_monitor', 'MEMBER');

SELECT to_regclass('users')::text, to_regclass('nothing'), to_regtype('mood')::text, to_regnamespace('sales')::text, to_regclass('sales.orders')::text, to_regproc('now')::text, to_regrole('nobody');

SELECT pg_get_serial_sequence('users', 'id'), pg_get_serial_sequence('public.teams', 'id'), pg_get_serial_sequence('sales.lines', 'line');

SELECT * FROM pg_identify_object('pg_class'::regclass, {class users}, 0);

-- differs: it is not there
SELECT * FROM pg_identify_object_as_address('pg_class'::regclass, {class users}, 1);

SELECT pg_describe_object('pg_class'::regclass, {class users}, 0), pg_describe_object('pg_class'::regclass, {class users}, 2), pg_describe_object('pg_type'::regclass, {type mood}, 0), pg_describe_object('pg_namespace'::regclass, {namespace sales}, 0), pg_describe_object(1259, {class users_name_idx}, 0), pg_describe_object(1259, {class grown_ups}, 0), pg_describe_object(1259, {class numbers}, 0), pg_describe_object(1255, 870, 0);

SELECT col_description('users'::regclass, 2), obj_description('users'::regclass), shobj_description(1, 'pg_class');

SELECT format('%I.%L %s %%', 'a b', 'it''s', 1), format('%2$s-%1$s', 'a', 'b'), quote_ident('select'), quote_literal(E'a\\b');

SELECT x, n FROM unnest(ARRAY['a', 'b'], ARRAY[1, 2, 3]) WITH ORDINALITY AS t(x, y, n) ORDER BY n;

SELECT amname, pg_indexam_has_property(oid, 'can_unique'), pg_index_column_has_property('users_age_idx'::regclass, 1, 'desc'), pg_index_has_property('users_pkey'::regclass, 'clusterable') FROM pg_am WHERE amname = 'btree';

SELECT 'users'::regclass, 'sales.orders'::regclass::oid = {class sales.orders}, 'int4'::regtype, 'public'::regnamespace, 'lower(text)'::regprocedure, 'now'::regproc, '+(int4,int4)'::regoperator;

SELECT a COLLATE "C" FROM (VALUES ('b'), ('B'), ('a'), ('ä')) v(a) ORDER BY a COLLATE "C";

SELECT (aclexplode('{=r/qserver,qserver=arw*/qserver}'::aclitem[])).*;

SELECT pg_typeof(feels), pg_typeof(u), pg_typeof(tags), pg_typeof(ARRAY[feels]) FROM users u LIMIT 1;

SELECT enum_range(NULL::mood), enum_first(NULL::mood), enum_last(NULL::mood), 'ok'::mood > 'sad';

SELECT row_to_json(t) FROM (SELECT id, feels, tags FROM users ORDER BY id) t;

SELECT pg_column_size(1), pg_size_pretty(123456789::bigint), pg_size_bytes('1 GB');

SELECT conname FROM pg_constraint WHERE conrelid::regclass::text = 'users' AND contype = 'u';

SELECT pg_relation_filenode('users') IS NOT NULL, pg_relation_filepath('users') IS NOT NULL;

-- differs: no tool but tests of PostgreSQL asks for them
SELECT * FROM pg_get_catalog_foreign_keys() WHERE false;

SELECT i.relname FROM pg_class i WHERE i.relkind = 'i' AND i.relname ~ '^users' AND i.relname !~* 'PKEY$' ORDER BY i.relname COLLATE "C";
-- What every migration tool may send: a schema of somebody.
CREATE SCHEMA theirs AUTHORIZATION qserver;
CREATE SCHEMA IF NOT EXISTS theirs AUTHORIZATION qserver;
CREATE SCHEMA AUTHORIZATION qserver;
SELECT nspname FROM pg_namespace WHERE nspname IN ('theirs', 'qserver') ORDER BY 1;
DROP SCHEMA theirs, qserver;
SELECT indexrelid::regclass FROM pg_index WHERE indrelid = 'users'::regclass GROUP BY indexrelid, indpred, indexprs ORDER BY 1;
SELECT pg_get_serial_sequence('grown_ups', 'id'), pg_get_serial_sequence('users', 'id');
SELECT pg_get_serial_sequence('grown_ups', 'nothing');
SELECT oid FROM pg_type WHERE typreceive::text = 'textrecv' LIMIT 1;
SELECT typname FROM pg_type LIMIT 20;
SELECT column_name FROM information_schema.columns WHERE table_schema = 'public' AND table_name = 'users';
