SET extra_float_digits = 3;

SET application_name = 'Metabase v0.49';

SET SESSION CHARACTERISTICS AS TRANSACTION READ ONLY;

SET SESSION CHARACTERISTICS AS TRANSACTION READ WRITE;

SET SESSION TIMEZONE TO 'UTC';

select n.nspname as "schema", c.relname as "name",
  case c.relkind when 'r' then 'TABLE' when 'p' then 'PARTITIONED TABLE' when 'v' then 'VIEW' when 'f' then 'FOREIGN TABLE' when 'm' then 'MATERIALIZED VIEW' else null end as "type",
  d.description as "description", stat.n_live_tup >= 0 as "estimated_row_count"
from pg_catalog.pg_class as c
inner join pg_catalog.pg_namespace as n on c.relnamespace = n.oid
left join pg_catalog.pg_description as d on (c.oid = d.objoid) and (d.objsubid = 0) and (d.classoid = 'pg_class'::regclass)
left join pg_stat_user_tables as stat on (n.nspname = stat.schemaname) and (c.relname = stat.relname)
where (c.relnamespace = n.oid) and (n.nspname !~ '^pg_') and (n.nspname <> 'information_schema') and c.relkind in ('r', 'p', 'v', 'f', 'm') and (n.nspname in ('public', 'sales'))
order by "type" asc, "schema" asc, "name" asc;

with table_privileges as (
  select NULL as role, t.schemaname as schema, t.objectname as table,
   pg_catalog.has_any_column_privilege(current_user, '"' || replace(t.schemaname, '"', '""') || '"' || '.' || '"' || replace(t.objectname, '"', '""') || '"',  'update') as update,
   pg_catalog.has_any_column_privilege(current_user, '"' || replace(t.schemaname, '"', '""') || '"' || '.' || '"' || replace(t.objectname, '"', '""') || '"',  'select') as select,
   pg_catalog.has_any_column_privilege(current_user, '"' || replace(t.schemaname, '"', '""') || '"' || '.' || '"' || replace(t.objectname, '"', '""') || '"',  'insert') as insert,
   pg_catalog.has_table_privilege(     current_user, '"' || replace(t.schemaname, '"', '""') || '"' || '.' || '"' || replace(t.objectname, '"', '""') || '"',  'delete') as delete
  from (
    select schemaname, tablename as objectname from pg_catalog.pg_tables
    union
    select schemaname, viewname as objectname from pg_views
    union
    select schemaname, matviewname as objectname from pg_matviews
  ) t
  where t.schemaname !~ '^pg_' and t.schemaname <> 'information_schema' and pg_catalog.has_schema_privilege(current_user, t.schemaname, 'usage')
)
select t.* from table_privileges t order by 2, 3;

select c.column_name as name, c.udt_name as database_type, (c.ordinal_position - 1) as database_position, c.table_schema, c.table_name, (pk.column_name is not null) as "pk?",
  case when c.column_default is not null then true end is true as has_default,
  (c.column_default is null or lower(c.column_default) = 'null') and c.is_nullable = 'NO' as required,
  ((c.column_default is not null and c.column_default ~* 'nextval\(.*\)') or c.is_identity <> 'NO') as auto_increment,
  pg_catalog.col_description(format('%I.%I', c.table_schema, c.table_name)::regclass::oid, c.ordinal_position) as field_comment
from information_schema.columns c
left join (select tc.table_schema, tc.table_name, kc.column_name from information_schema.table_constraints as tc
  inner join information_schema.key_column_usage as kc on tc.constraint_name = kc.constraint_name and tc.table_schema = kc.table_schema and tc.table_name = kc.table_name
  where tc.constraint_type = 'PRIMARY KEY') pk
on c.table_schema = pk.table_schema and c.table_name = pk.table_name and c.column_name = pk.column_name
where c.table_schema !~ '^information_schema|catalog_history|pg_' and c.table_schema in ('public', 'sales')
order by c.table_schema, c.table_name, c.ordinal_position;

select fk_ns.nspname as "fk-table-schema", fk_table.relname as "fk-table-name", fk_column.attname as "fk-column-name",
  pk_ns.nspname as "pk-table-schema", pk_table.relname as "pk-table-name", pk_column.attname as "pk-column-name"
from pg_constraint c
join pg_class fk_table on c.conrelid = fk_table.oid
join pg_namespace fk_ns on c.connamespace = fk_ns.oid
join pg_attribute fk_column on c.conrelid = fk_column.attrelid
join pg_class pk_table on c.confrelid = pk_table.oid
join pg_namespace pk_ns on pk_table.relnamespace = pk_ns.oid
join pg_attribute pk_column on c.confrelid = pk_column.attrelid
where fk_ns.nspname !~ '^information_schema|catalog_history|pg_' and c.contype = 'f'::char and fk_column.attnum = any(c.conkey) and pk_column.attnum = any(c.confkey)
order by fk_ns.nspname, fk_table.relname, 3, 6;

SELECT nspname FROM pg_namespace WHERE nspname !~ '^pg_(toast|temp)' AND has_schema_privilege(nspname, 'USAGE') order by 1;

select nspname, typname from pg_type t join pg_namespace n on n.oid = t.typnamespace where t.oid in (select distinct e.enumtypid from pg_enum e) order by 1, 2;

with q as (select date_trunc('month', created_at at time zone 'UTC') as m, count(*) from "public"."users" group by 1) select * from q order by 1;

SELECT "source"."created_at" AS "created_at", "source"."count" AS "count" FROM (SELECT CAST("public"."users"."created_at" AS date) AS "created_at", COUNT(*) AS "count" FROM "public"."users" GROUP BY CAST("public"."users"."created_at" AS date) ORDER BY CAST("public"."users"."created_at" AS date) ASC) AS "source" LIMIT 1048575;

-- with ["ada", 5]
SELECT substring("public"."users"."name", 1, 1234) AS "n", FLOOR((("public"."users"."balance" - 0.0) / 10.0)) * 10.0 + 0.0 AS "b" FROM "public"."users" WHERE lower("public"."users"."name") LIKE $1 LIMIT $2;

SELECT (CAST(extract(dow from "users"."created_at") AS integer) + 1) AS d, CAST(extract(quarter from created_at) AS integer), (date_trunc('week', (created_at + (INTERVAL '1 day'))) + (INTERVAL '-1 day')) FROM users ORDER BY id;

SELECT PERCENTILE_CONT(0.5) within group (order by "public"."users"."balance") AS "median", VARIANCE(age), STDDEV_POP("age") FROM "public"."users";

-- columns: the length of a day
SELECT EXTRACT(epoch FROM now() - created_at)::bigint FROM users;

SHOW TIMEZONE;
