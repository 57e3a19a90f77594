-- unordered
select "nspname" from "pg_catalog"."pg_namespace";
-- with ["r", "v", "p", "^pg_", "information_schema", "crdb_internal", "0", "t"]
select "a"."attname" as "column", "a"."attnotnull" as "not_null", "a"."atthasdef" as "has_default", "c"."relname" as "table", "c"."relkind" as "table_type", "ns"."nspname" as "schema", "typ"."typname" as "type", "dtns"."nspname" as "type_schema", col_description(a.attrelid, a.attnum) as "column_description", pg_get_serial_sequence(quote_ident(ns.nspname) || '.' || quote_ident(c.relname), a.attname) as "auto_incrementing" from "pg_catalog"."pg_attribute" as "a" inner join "pg_catalog"."pg_class" as "c" on "a"."attrelid" = "c"."oid" inner join "pg_catalog"."pg_namespace" as "ns" on "c"."relnamespace" = "ns"."oid" inner join "pg_catalog"."pg_type" as "typ" on "a"."atttypid" = "typ"."oid" inner join "pg_catalog"."pg_namespace" as "dtns" on "typ"."typnamespace" = "dtns"."oid" where "c"."relkind" in ($1, $2, $3) and "ns"."nspname" !~ $4 and "ns"."nspname" != $5 and "ns"."nspname" != $6 and has_schema_privilege(ns.nspname, 'USAGE') and "a"."attnum" >= $7 and "a"."attisdropped" != $8 order by "ns"."nspname", "c"."relname", "a"."attnum";
-- with ["r", "v", "p", "^pg_", "information_schema", "crdb_internal", "0", "t"]
select "a"."attname" as "column", "a"."attnotnull" as "not_null", "a"."atthasdef" as "has_default", "c"."relname" as "table", "c"."relkind" as "table_type", "ns"."nspname" as "schema", "typ"."typname" as "type", "dtns"."nspname" as "type_schema", col_description(a.attrelid, a.attnum) as "column_description", pg_get_serial_sequence(quote_ident(ns.nspname) || '.' || quote_ident(c.relname), a.attname) as "auto_incrementing" from "pg_catalog"."pg_attribute" as "a" inner join "pg_catalog"."pg_class" as "c" on "a"."attrelid" = "c"."oid" inner join "pg_catalog"."pg_namespace" as "ns" on "c"."relnamespace" = "ns"."oid" inner join "pg_catalog"."pg_type" as "typ" on "a"."atttypid" = "typ"."oid" inner join "pg_catalog"."pg_namespace" as "dtns" on "typ"."typnamespace" = "dtns"."oid" where "c"."relkind" in ($1, $2, $3) and "ns"."nspname" !~ $4 and "ns"."nspname" != $5 and "ns"."nspname" != $6 and has_schema_privilege(ns.nspname, 'USAGE') and "a"."attnum" >= $7 and "a"."attisdropped" != $8 order by "ns"."nspname", "c"."relname", "a"."attnum";
create table if not exists "kysely_migration" ("name" varchar(255) not null primary key, "timestamp" varchar(255) not null);
create table if not exists "kysely_migration_lock" ("id" varchar(255) not null primary key, "is_locked" integer default 0 not null);
-- with ["migration_lock"]
select "id" from "kysely_migration_lock" where "id" = $1;
-- with ["migration_lock", "0"]
insert into "kysely_migration_lock" ("id", "is_locked") values ($1, $2);
with set_timeout as (
      select set_config('lock_timeout', '3600000', true) as config_val
    )
    select pg_advisory_lock(3853314791062309107)
    from set_timeout;
select "name", "timestamp" from "kysely_migration";
create table "ky" ("id" serial primary key, "a" varchar(10) not null unique, "j" jsonb, "made" timestamptz default now());
-- with ["a", "2026-11-19T20:50:07.578Z"]
insert into "kysely_migration" ("name", "timestamp") values ($1, $2);
select pg_advisory_unlock(3853314791062309107);
select "name", "timestamp" from "kysely_migration";
-- with ["x", "{}", "y"]
insert into "ky" ("a", "j") values ($1, $2), ($3, default) returning "id", "a";
-- with ["x", "{\"z\": 1}"]
insert into "ky" ("a") values ($1) on conflict ("a") do update set "j" = $2;
-- with ["x", "y"]
select "id", count(*) over() as "n" from "ky" where "a" in ($1, $2) order by "id";
-- with ["q", "1"]
-- hides made
update "ky" set "a" = $1 where "id" = $2 returning *;
alter table "ky" add column "n" integer default 1 not null;
alter table "ky" alter column "n" type bigint;
create index "kyi" on "ky" ("a", "n");
create type "kyt" as enum ('a', 'b');
create view "kyv" as select "id" from "ky";
drop view "kyv";
drop type "kyt";
create schema if not exists "kys";
select "id", (select coalesce(json_agg(agg), '[]') from (select "team_id" from "members" where "members"."user_id" = "users"."id" order by "team_id") as agg) as "ms" from "users" order by "id";
-- with ["migration_lock"]
select "id" from "kysely_migration_lock" where "id" = $1;
with set_timeout as (
      select set_config('lock_timeout', '3600000', true) as config_val
    )
    select pg_advisory_lock(3853314791062309107)
    from set_timeout;
drop table "ky";
-- with ["a"]
delete from "kysely_migration" where "name" = $1;
select pg_advisory_unlock(3853314791062309107);
