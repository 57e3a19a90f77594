-- columns: PostgreSQL 16 has some more of its own
select b.oid, b.typarray
      from pg_catalog.pg_type a
      left join pg_catalog.pg_type b on b.oid = a.typelem
      where a.typcategory = 'A'
      group by b.oid, b.typarray
      order by b.oid;
select * from users order by id;
-- with ["{1,2}", "{\"a\": 1}", "1970-01-01 00:00:00+00"]
select $1::int[] as a, $2::jsonb as j, $3::timestamptz as t;
-- with ["1", "2", "2", "1"]
insert into members ("user_id","team_id")values($1,$2),($3,$4);
select count(*)::int from members;
-- with ["z", "1"]
update members set "role"=$1 where user_id = $2 returning role;
select * from generate_series(1,5) x;
select * from generate_series(1,5) x;
-- with ["ch", "hi"]
select pg_notify($1, $2);
select 1 as a; select 2 as b;
-- columns: PostgreSQL 16 has some more of its own
select b.oid, b.typarray
      from pg_catalog.pg_type a
      left join pg_catalog.pg_type b on b.oid = a.typelem
      where a.typcategory = 'A'
      group by b.oid, b.typarray
      order by b.oid;
-- with ["happy", "1", "2"]
select $1::mood = feels as x from users where id in ($2,$3) order by id;
set application_name = 'x';
