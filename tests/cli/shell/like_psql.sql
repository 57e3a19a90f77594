\d
\d users
\d+ users
\d shop.*
\d+ shop.lines
\d+ shop.products
\d "Odd Name".*
\d users_lower
\d+ users_name
\d invoice_numbers
\d+ shop.products_id_seq
\d+ active_users
\d+ checked
\d+ no_columns
\dt
\dt+
\dt shop.*
\dt s*.*ord*
\dtv
\di
\di+
\dv+
\ds
\ds+ shop.*
\dn
\dn+
\dnS
\dT
\dT+
\dT shop.*
\df
\df lower
\df+ upper
\dfa max
\du
\du+
\dp
\dp shop.*
\dx
\l
\l+
\l ma*
\dS pg_am
\sv active_users
\sv+ checked
SELECT 1 AS a, 'x' AS b, NULL AS c;
\x
SELECT 1 AS a, E'x\ny' AS b, NULL AS c \g
\d users_lower
\dt
\x
\pset null NULL
SELECT 1 AS a, E'x\ny' AS b, NULL AS c UNION ALL SELECT 22, '', NULL;
\pset border 2
SELECT 1 AS a, E'x\ny' AS b, NULL AS c UNION ALL SELECT 22, '', NULL;
\x
SELECT 1 AS a, E'x\ny' AS b, NULL AS c UNION ALL SELECT 22, '', NULL;
\pset border 0
SELECT 1 AS a, E'x\ny' AS b, NULL AS c UNION ALL SELECT 22, '', NULL;
\x
SELECT 1 AS a, E'x\ny' AS b, NULL AS c UNION ALL SELECT 22, '', NULL;
\pset border 1
\t
SELECT 1 AS a, E'x\ny' AS b, NULL AS c UNION ALL SELECT 22, '', NULL;
\a
SELECT 1 AS a, 'x' AS b, NULL AS c UNION ALL SELECT 22, '', NULL;
\t
\f ;
SELECT 1 AS a, 'x' AS b, NULL AS c UNION ALL SELECT 22, '', NULL;
\x
SELECT 1 AS a, 'x' AS b, NULL AS c UNION ALL SELECT 22, '', NULL;
\d users_lower
\dn
\x \H
SELECT 1 AS a, '<b>' AS b, NULL AS c UNION ALL SELECT 22, '', NULL;
\x
SELECT 1 AS a, '<b>' AS b, NULL AS c UNION ALL SELECT 22, '', NULL;
\x
\H
\pset linestyle unicode
\pset border 2
SELECT 1 AS a, E'x\ny' AS b, NULL AS c UNION ALL SELECT 22, '', NULL;
\d users_lower
\pset linestyle ascii
\pset border 1
\pset null ''
\C title
SELECT 1 AS a, 2 AS longer_name;
\C
SELECT 1 AS a, 'it''s' AS b \gset p_
\echo :p_a :'p_b' :"p_b" :{?p_a} :{?nothing} :nothing
SELECT :p_a + 1 AS n, :'p_b' AS t;
SELECT 'SELECT ' || n || ' AS n' FROM generate_series(1, 2) AS n \gexec
SELECT 1::bigint AS a, 'x'::varchar(10) AS b, 1.5::numeric(10,2) AS c \gdesc
SELECT * FROM (VALUES ('a','x',1),('a','y',2),('b','x',3)) AS t (v, h, d) \crosstabview
SELECT * FROM (VALUES ('a','x',1),('a','y',2),('b','x',3)) AS t (v, h, d) \crosstabview h v d
\if :p_a
\echo yes
\if false
\echo no
\elif true
\echo elif
\else
SELECT 'not run';
\endif
\else
\echo no
\endif
SELECT
\if false
  1
\else
  2
\endif
  AS chosen;
\set x 'SELECT 5 AS five;'
:x
\set y '\'quoted\'' and more
\echo :y `echo from shell` "in quotes" -n
\qecho to results
SELECT 1 AS a \gx
SELECT 1 AS a, 2 AS b \g (format=csv)
SELECT 2 AS again
\p
\g
\p
\r
\pset format csv
SELECT 1 AS a, 'x,y' AS b;
\pset format aligned
SELECT 1 AS a \; SELECT 2 AS b;
EXPLAIN (FORMAT JSON, COSTS OFF) SELECT 'ü' AS a FROM generate_series(1, 2) AS n WHERE n > 1;
EXPLAIN (FORMAT JSON) SELECT 1 AS a \gx
EXPLAIN (FORMAT JSON) SELECT 1 AS a \g (format=csv)
EXPLAIN (FORMAT JSON) SELECT 1 AS a \g (format=unaligned)
EXPLAIN (FORMAT JSON) SELECT 1 AS a \g (format=html)
SELECT '[{"a":1}]'::json AS "QUERY PLANS";
EXPLAIN (FORMAT YAML) SELECT 1 AS a;
EXPLAIN (FORMAT XML) SELECT 1 AS a;
