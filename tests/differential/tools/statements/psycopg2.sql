select * from users order by id;
-- unordered
SELECT t.oid, typarray
FROM pg_type t JOIN pg_namespace ns
    ON typnamespace = ns.oid
WHERE typname = 'hstore';
SELECT t.oid, typarray, attname, atttypid
FROM pg_type t
JOIN pg_namespace ns ON typnamespace = ns.oid
JOIN pg_attribute a ON attrelid = typrelid
WHERE typname = 'users' AND nspname = 'public'
    AND attnum > 0 AND NOT attisdropped
ORDER BY attnum;
select u from users u order by id;
insert into members (user_id,team_id) values (1,2),(2,1);
update members set role='a' where user_id=1;update members set role='b' where user_id=2;
show transaction_read_only;
SET default_transaction_read_only TO 'off';
select 1/0;
select '{1,2}'::int[], now()::date is not null, '1 day'::interval, '{"a":1}'::jsonb, 1.5::numeric, 'x'::bytea, row(1,2), array['a','b'], null;
