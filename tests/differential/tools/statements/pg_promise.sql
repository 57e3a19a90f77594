select count(*) from users;
select "email" from "users" where id = 1;
select 1 where false;
insert into "members"("user_id","team_id") values(1,2);
update members set role='q';
select 1 as a;
delete from members where team_id=2;
select * from members order by 1;
-- hides pg_backend_pid
select * from pg_backend_pid();
select 1 as a;select 2 as b;
select 3 as c;
