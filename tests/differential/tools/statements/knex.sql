-- hides version
select version();
set search_path to "public","sales";
-- with ["knex_migrations"]
select * from information_schema.tables where table_name = $1 and table_schema = current_schema();
create table "knex_migrations" ("id" serial primary key, "name" varchar(255), "batch" integer, "migration_time" timestamptz);
-- with ["knex_migrations_lock"]
select * from information_schema.tables where table_name = $1 and table_schema = current_schema();
create table "knex_migrations_lock" ("index" serial primary key, "is_locked" integer);
select * from "knex_migrations_lock";
select * from "knex_migrations_lock";
-- with ["0"]
insert into "knex_migrations_lock" ("is_locked") values ($1);
select "name" from "knex_migrations" order by "id" asc;
-- with ["1", "0"]
update "knex_migrations_lock" set "is_locked" = $1 where "is_locked" = $2;
select "name" from "knex_migrations" order by "id" asc;
select max("batch") as "max_batch" from "knex_migrations";
create table "km" ("id" serial primary key, "a" varchar(255), "created_at" timestamptz not null default CURRENT_TIMESTAMP, "updated_at" timestamptz not null default CURRENT_TIMESTAMP, "e" text check ("e" in ('x', 'y')), "j" jsonb, "u" uuid default (gen_random_uuid()), "d" decimal(10, 2), "arr" text[]);
comment on table "km" is 'hello';
alter table "km" add constraint "km_a_unique" unique ("a");
create index "km_j_index" on "km" ("j");
-- with ["1", "2026-11-19 20:39:58.147+00", "a"]
insert into "knex_migrations" ("batch", "migration_time", "name") values ($1, $2, $3);
-- with ["0"]
update "knex_migrations_lock" set "is_locked" = $1;
select * from "knex_migrations";
-- with ["users", "email"]
select * from information_schema.columns where table_name = $1 and column_name = $2 and table_schema = current_schema();
-- with ["users"]
select * from information_schema.columns where table_name = $1 and table_catalog = current_database() and table_schema = current_schema();
alter table "km" add column "b" varchar(10) not null default 'q', add column "uid" integer;
alter table "km" drop column "e";
alter table "km" add constraint "km_uid_foreign" foreign key ("uid") references "users" ("id") on delete CASCADE;
create index "km_i" on "km" ("a", "b");
alter table "km" alter column "b" drop default;
alter table "km" alter column "b" drop not null;
alter table "km" alter column "b" type varchar(30) using ("b"::varchar(30));
alter table "km" rename "a" to "aa";
alter table "km" drop constraint "km_uid_foreign";
drop index "km_i";
alter table "km" alter column "aa" drop not null;
-- with ["1", "{\"a\": 1}", "2"]
insert into "km" ("aa", "j") values ($1, $2), ($3, DEFAULT) returning "id", "aa";
-- with ["1"]
insert into "km" ("aa") values ($1) on conflict ("aa") do update set "aa" = excluded."aa" returning "id";
-- with ["z", "1"]
update "km" set "b" = $1 where "aa" = $2 returning "b";
-- with ["1"]
-- hides created_at, u, updated_at
select * from "km" where "id" = $1 for update;
-- with ["2"]
delete from "km" where "aa" = $1;
-- with ["1"]
select count(*)::int as n from "km" limit $1;
select "u"."id", "m"."role" from "users" as "u" inner join "members" as "m" on "m"."user_id" = "u"."id" order by "u"."id" asc;
select "aa" from "km";
-- with ["1", "2"]
select distinct "aa" from "km" where "id" in ($1, $2);
alter table "km" rename to "km2";
create view "kv" ("id") as select "id" from "km2";
drop view "kv";
alter table "km2" rename to "km";
select * from "knex_migrations" where "batch" = (select max("batch") from "knex_migrations") order by "id" desc;
select max("batch") as "max_batch" from "knex_migrations";
drop table "km";
-- with ["a"]
delete from "knex_migrations" where "name" = $1;
