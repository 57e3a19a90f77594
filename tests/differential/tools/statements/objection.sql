-- hides version
select version();
select "id", "name" from "users" order by "id" asc;
-- with ["1", "2"]
select "teams".*, "members"."role" as "role", "members"."user_id" as "objectiontmpjoin0" from "teams" inner join "members" on "teams"."id" = "members"."team_id" where "members"."user_id" in ($1, $2);
-- with ["users"]
select * from information_schema.columns where table_name = $1 and table_catalog = current_database() and table_schema = current_schema();
-- with ["teams"]
select * from information_schema.columns where table_name = $1 and table_catalog = current_database() and table_schema = current_schema();
select "users"."id", "teams"."id" as "teams:id", "teams"."title" as "teams:title", "teams"."parent_id" as "teams:parent_id", "teams_join"."role" as "teams:role" from "users" left join "members" as "teams_join" on "teams_join"."user_id" = "users"."id" left join "teams" on "teams_join"."team_id" = "teams"."id" order by "users"."id" asc;
select count(*) as "count" from (select "users".* from "users") as "temp";
-- with ["1"]
select "id" from "users" order by "id" asc limit $1;
select count(*) as "count" from (select "id" from "users") as "temp";
-- with ["z", "Z"]
insert into "users" ("email", "name") values ($1, $2) returning "id";
-- with ["nt"]
insert into "teams" ("title") values ($1) returning "id";
-- with ["3", "3"]
insert into "members" ("team_id", "user_id") values ($1, $2) returning "team_id";
-- with ["5", "3"]
update "users" set "age" = $1 where "users"."id" = $2;
-- with ["3"]
-- hides created_at
select "users".* from "users" where "users"."id" = $1;
-- with ["3"]
delete from "users" where "users"."id" = $1;
select "id" from "teams" where exists (select * from "members" where members.team_id = teams.id) order by "id" asc;
