-- hides version
select version();
select 1 from pg_database where datname = 'mikro';
select 1;
select table_name, table_schema as schema_name, (select pg_catalog.obj_description(c.oid) from pg_catalog.pg_class c
          where c.oid = (select ('"' || table_schema || '"."' || table_name || '"')::regclass::oid) and c.relname = table_name) as table_comment from information_schema.tables where "table_schema" not like 'pg_%' and "table_schema" not like 'crdb_%' and "table_schema" not like '_timescaledb_%' and "table_schema" not in ('information_schema', 'tiger', 'topology') and table_name != 'geometry_columns' and table_name != 'spatial_ref_sys' and table_type != 'VIEW' and table_name not in (select inhrelid::regclass::text from pg_inherits) order by table_name;
-- unordered
select t.typname as enum_name, n.nspname as schema_name, array_agg(e.enumlabel order by e.enumsortorder) as enum_value
        from pg_type t
        join pg_enum e on t.oid = e.enumtypid
        join pg_catalog.pg_namespace n on n.oid = t.typnamespace
        where n.nspname in ('public', 'sales')
        group by t.typname, n.nspname;
-- unordered
select table_schema as schema_name, table_name, column_name,
      column_default,
      is_nullable,
      udt_name,
      udt_schema,
      coalesce(datetime_precision, character_maximum_length) length,
      atttypmod custom_length,
      numeric_precision,
      numeric_scale,
      data_type,
      is_identity,
      identity_generation,
      generation_expression,
      pg_catalog.col_description(pgc.oid, cols.ordinal_position::int) column_comment
      from information_schema.columns cols
      join pg_class pgc on cols.table_name = pgc.relname
      join pg_attribute pga on pgc.oid = pga.attrelid and cols.column_name = pga.attname
      where ((table_schema = 'public' and table_name in ('Odd Names','members','teams','users')) or (table_schema = 'sales' and table_name in ('lines','orders')))
      order by ordinal_position;
select indrelid::regclass as table_name, ns.nspname as schema_name, relname as constraint_name, idx.indisunique as unique, idx.indisprimary as primary, contype, condeferrable, condeferred,
      array(
        select pg_get_indexdef(idx.indexrelid, k + 1, true)
        from generate_subscripts(idx.indkey, 1) as k
        order by k
      ) as index_def,
      pg_get_indexdef(idx.indexrelid) as expression,
      c.condeferrable as deferrable,
      c.condeferred as initially_deferred
      from pg_index idx
      join pg_class as i on i.oid = idx.indexrelid
      join pg_namespace as ns on i.relnamespace = ns.oid
      left join pg_constraint as c on c.conname = i.relname
      where indrelid in ('"public"."Odd Names"'::regclass, '"sales"."lines"'::regclass, '"public"."members"'::regclass, '"sales"."orders"'::regclass, '"public"."teams"'::regclass, '"public"."users"'::regclass)
      order by relname;
select ccu.table_name as table_name, ccu.table_schema as schema_name, pgc.conname as name, conrelid::regclass as table_from, ccu.column_name as column_name, pg_get_constraintdef(pgc.oid) as expression
      from pg_constraint pgc
      join pg_namespace nsp on nsp.oid = pgc.connamespace
      join pg_class cls on pgc.conrelid = cls.oid
      join information_schema.constraint_column_usage ccu on pgc.conname = ccu.constraint_name and nsp.nspname = ccu.constraint_schema and cls.relname = ccu.table_name
      where contype = 'c' and (ccu.table_name in ('Odd Names','members','teams','users') and ccu.table_schema = 'public' or ccu.table_name in ('lines','orders') and ccu.table_schema = 'sales')
      order by pgc.conname;
select nsp1.nspname schema_name, cls1.relname table_name, nsp2.nspname referenced_schema_name,
      cls2.relname referenced_table_name, a.attname column_name, af.attname referenced_column_name, conname constraint_name,
      confupdtype update_rule, confdeltype delete_rule, array_position(con.conkey,a.attnum) as ord, condeferrable, condeferred,
      pg_get_constraintdef(con.oid) as constraint_def
      from pg_attribute a
      join pg_constraint con on con.conrelid = a.attrelid AND a.attnum = ANY (con.conkey)
      join pg_attribute af on af.attnum = con.confkey[array_position(con.conkey,a.attnum)] AND af.attrelid = con.confrelid
      join pg_namespace nsp1 on nsp1.oid = con.connamespace
      join pg_class cls1 on cls1.oid = con.conrelid
      join pg_class cls2 on cls2.oid = confrelid
      join pg_namespace nsp2 on nsp2.oid = cls2.relnamespace
      where ((cls1.relname in ('Odd Names','members','teams','users') and nsp1.nspname = 'public') or (cls1.relname in ('lines','orders') and nsp1.nspname = 'sales'))
      and confrelid > 0
      order by nsp1.nspname, cls1.relname, constraint_name, ord;
select table_name, table_schema as schema_name, (select pg_catalog.obj_description(c.oid) from pg_catalog.pg_class c
          where c.oid = (select ('"' || table_schema || '"."' || table_name || '"')::regclass::oid) and c.relname = table_name) as table_comment from information_schema.tables where "table_schema" not like 'pg_%' and "table_schema" not like 'crdb_%' and "table_schema" not like '_timescaledb_%' and "table_schema" not in ('information_schema', 'tiger', 'topology') and table_name != 'geometry_columns' and table_name != 'spatial_ref_sys' and table_type != 'VIEW' and table_name not in (select inhrelid::regclass::text from pg_inherits) order by table_name;
-- unordered
select t.typname as enum_name, n.nspname as schema_name, array_agg(e.enumlabel order by e.enumsortorder) as enum_value
        from pg_type t
        join pg_enum e on t.oid = e.enumtypid
        join pg_catalog.pg_namespace n on n.oid = t.typnamespace
        where n.nspname in ('public')
        group by t.typname, n.nspname;
-- unordered
select table_schema as schema_name, table_name, column_name,
      column_default,
      is_nullable,
      udt_name,
      udt_schema,
      coalesce(datetime_precision, character_maximum_length) length,
      atttypmod custom_length,
      numeric_precision,
      numeric_scale,
      data_type,
      is_identity,
      identity_generation,
      generation_expression,
      pg_catalog.col_description(pgc.oid, cols.ordinal_position::int) column_comment
      from information_schema.columns cols
      join pg_class pgc on cols.table_name = pgc.relname
      join pg_attribute pga on pgc.oid = pga.attrelid and cols.column_name = pga.attname
      where ((table_schema = 'public' and table_name in ('Odd Names','members','teams','users')) or (table_schema = 'sales' and table_name in ('lines','orders')))
      order by ordinal_position;
select indrelid::regclass as table_name, ns.nspname as schema_name, relname as constraint_name, idx.indisunique as unique, idx.indisprimary as primary, contype, condeferrable, condeferred,
      array(
        select pg_get_indexdef(idx.indexrelid, k + 1, true)
        from generate_subscripts(idx.indkey, 1) as k
        order by k
      ) as index_def,
      pg_get_indexdef(idx.indexrelid) as expression,
      c.condeferrable as deferrable,
      c.condeferred as initially_deferred
      from pg_index idx
      join pg_class as i on i.oid = idx.indexrelid
      join pg_namespace as ns on i.relnamespace = ns.oid
      left join pg_constraint as c on c.conname = i.relname
      where indrelid in ('"public"."Odd Names"'::regclass, '"sales"."lines"'::regclass, '"public"."members"'::regclass, '"sales"."orders"'::regclass, '"public"."teams"'::regclass, '"public"."users"'::regclass)
      order by relname;
select ccu.table_name as table_name, ccu.table_schema as schema_name, pgc.conname as name, conrelid::regclass as table_from, ccu.column_name as column_name, pg_get_constraintdef(pgc.oid) as expression
      from pg_constraint pgc
      join pg_namespace nsp on nsp.oid = pgc.connamespace
      join pg_class cls on pgc.conrelid = cls.oid
      join information_schema.constraint_column_usage ccu on pgc.conname = ccu.constraint_name and nsp.nspname = ccu.constraint_schema and cls.relname = ccu.table_name
      where contype = 'c' and (ccu.table_name in ('Odd Names','members','teams','users') and ccu.table_schema = 'public' or ccu.table_name in ('lines','orders') and ccu.table_schema = 'sales')
      order by pgc.conname;
select nsp1.nspname schema_name, cls1.relname table_name, nsp2.nspname referenced_schema_name,
      cls2.relname referenced_table_name, a.attname column_name, af.attname referenced_column_name, conname constraint_name,
      confupdtype update_rule, confdeltype delete_rule, array_position(con.conkey,a.attnum) as ord, condeferrable, condeferred,
      pg_get_constraintdef(con.oid) as constraint_def
      from pg_attribute a
      join pg_constraint con on con.conrelid = a.attrelid AND a.attnum = ANY (con.conkey)
      join pg_attribute af on af.attnum = con.confkey[array_position(con.conkey,a.attnum)] AND af.attrelid = con.confrelid
      join pg_namespace nsp1 on nsp1.oid = con.connamespace
      join pg_class cls1 on cls1.oid = con.conrelid
      join pg_class cls2 on cls2.oid = confrelid
      join pg_namespace nsp2 on nsp2.oid = cls2.relnamespace
      where ((cls1.relname in ('Odd Names','members','teams','users') and nsp1.nspname = 'public') or (cls1.relname in ('lines','orders') and nsp1.nspname = 'sales'))
      and confrelid > 0
      order by nsp1.nspname, cls1.relname, constraint_name, ord;
-- unordered
select t.typname as enum_name, n.nspname as schema_name, array_agg(e.enumlabel order by e.enumsortorder) as enum_value
        from pg_type t
        join pg_enum e on t.oid = e.enumtypid
        join pg_catalog.pg_namespace n on n.oid = t.typnamespace
        where n.nspname in ('public')
        group by t.typname, n.nspname;
set names 'utf8';
create type "mk" as enum ('a', 'b'); /**/
create table "ma" ("id" serial primary key, "n" varchar(20) not null, "k" "mk" not null, "j" jsonb null, "tags" text[] null, "d" numeric(10,2) null, "made" timestamptz(3) not null default now()); /**/
comment on column "ma"."n" is 'c'; /**/
alter table "ma" add constraint "ma_n_unique" unique ("n"); /**/
create index "ma_k_d_index" on "ma" ("k", "d");
create table "mb" ("id" uuid not null default gen_random_uuid(), "t" text not null, "a_id" int not null, constraint "mb_pkey" primary key ("id"));
alter table "mb" add constraint "mb_a_id_foreign" foreign key ("a_id") references "ma" ("id") on update cascade on delete cascade;
-- unordered
select table_schema as schema_name, table_name, column_name,
      column_default,
      is_nullable,
      udt_name,
      udt_schema,
      coalesce(datetime_precision, character_maximum_length) length,
      atttypmod custom_length,
      numeric_precision,
      numeric_scale,
      data_type,
      is_identity,
      identity_generation,
      generation_expression,
      pg_catalog.col_description(pgc.oid, cols.ordinal_position::int) column_comment
      from information_schema.columns cols
      join pg_class pgc on cols.table_name = pgc.relname
      join pg_attribute pga on pgc.oid = pga.attrelid and cols.column_name = pga.attname
      where ((table_schema = 'public' and table_name in ('Odd Names','ma','mb','members','teams','users')) or (table_schema = 'sales' and table_name in ('lines','orders')))
      order by ordinal_position;
select indrelid::regclass as table_name, ns.nspname as schema_name, relname as constraint_name, idx.indisunique as unique, idx.indisprimary as primary, contype, condeferrable, condeferred,
      array(
        select pg_get_indexdef(idx.indexrelid, k + 1, true)
        from generate_subscripts(idx.indkey, 1) as k
        order by k
      ) as index_def,
      pg_get_indexdef(idx.indexrelid) as expression,
      c.condeferrable as deferrable,
      c.condeferred as initially_deferred
      from pg_index idx
      join pg_class as i on i.oid = idx.indexrelid
      join pg_namespace as ns on i.relnamespace = ns.oid
      left join pg_constraint as c on c.conname = i.relname
      where indrelid in ('"public"."Odd Names"'::regclass, '"sales"."lines"'::regclass, '"public"."ma"'::regclass, '"public"."mb"'::regclass, '"public"."members"'::regclass, '"sales"."orders"'::regclass, '"public"."teams"'::regclass, '"public"."users"'::regclass)
      order by relname;
select ccu.table_name as table_name, ccu.table_schema as schema_name, pgc.conname as name, conrelid::regclass as table_from, ccu.column_name as column_name, pg_get_constraintdef(pgc.oid) as expression
      from pg_constraint pgc
      join pg_namespace nsp on nsp.oid = pgc.connamespace
      join pg_class cls on pgc.conrelid = cls.oid
      join information_schema.constraint_column_usage ccu on pgc.conname = ccu.constraint_name and nsp.nspname = ccu.constraint_schema and cls.relname = ccu.table_name
      where contype = 'c' and (ccu.table_name in ('Odd Names','ma','mb','members','teams','users') and ccu.table_schema = 'public' or ccu.table_name in ('lines','orders') and ccu.table_schema = 'sales')
      order by pgc.conname;
select nsp1.nspname schema_name, cls1.relname table_name, nsp2.nspname referenced_schema_name,
      cls2.relname referenced_table_name, a.attname column_name, af.attname referenced_column_name, conname constraint_name,
      confupdtype update_rule, confdeltype delete_rule, array_position(con.conkey,a.attnum) as ord, condeferrable, condeferred,
      pg_get_constraintdef(con.oid) as constraint_def
      from pg_attribute a
      join pg_constraint con on con.conrelid = a.attrelid AND a.attnum = ANY (con.conkey)
      join pg_attribute af on af.attnum = con.confkey[array_position(con.conkey,a.attnum)] AND af.attrelid = con.confrelid
      join pg_namespace nsp1 on nsp1.oid = con.connamespace
      join pg_class cls1 on cls1.oid = con.conrelid
      join pg_class cls2 on cls2.oid = confrelid
      join pg_namespace nsp2 on nsp2.oid = cls2.relnamespace
      where ((cls1.relname in ('Odd Names','ma','mb','members','teams','users') and nsp1.nspname = 'public') or (cls1.relname in ('lines','orders') and nsp1.nspname = 'sales'))
      and confrelid > 0
      order by nsp1.nspname, cls1.relname, constraint_name, ord;
-- hides made
insert into "ma" ("n", "k", "j", "tags", "d") values ('x', 'a', '{"q":1}', '{p}', '1.5') returning "id", "made";
-- hides id
insert into "mb" ("t", "a_id") values ('t', 1) returning "id";
update "ma" set "n" = 'y' where "id" = 1;
-- hides b1__id, made
select "m0".*, "b1"."id" as "b1__id", "b1"."t" as "b1__t", "b1"."a_id" as "b1__a_id" from "ma" as "m0" left join "mb" as "b1" on "m0"."id" = "b1"."a_id" where "m0"."n" like 'y%' order by "m0"."id" asc;
select count(*) as "count" from "mb" as "m0" inner join "ma" as "m1" on "m0"."a_id" = "m1"."id" where "m1"."n" = 'y';
-- hides made
select "m0".* from "ma" as "m0" where ("m0"."j"->>'q')::float8 = 1 limit 1;
select count(*) as "count" from "ma" as "m0" where ("m0"."j"->>'q')::float8 = 1;
-- hides made
insert into "ma" ("k", "n") values ('b', 'y') on conflict ("n") do update set "k" = excluded."k" returning "id", "j", "tags", "d", "made";
-- differs: nothing is locked, so nothing can be skipped
select "m0".* from "ma" as "m0" where "m0"."n" = 'y' limit 1 for update skip locked;
delete from "ma" where "id" in (1);
select count(*) as "count" from "ma" as "m0";
