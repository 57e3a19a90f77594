-- Hidden columns of tables: EF Core compares xmin, DBeaver and DataGrip find rows by ctid, people drop doubles.
CREATE TABLE marked (id int PRIMARY KEY, a text, n numeric(6, 2));
INSERT INTO marked VALUES (1, 'x', 1.5), (2, 'y', NULL), (3, NULL, 2);
CREATE TABLE doubles (a text, b int);
INSERT INTO doubles VALUES ('x', 1), ('x', 1), ('y', 2), ('x', 1), (NULL, 3);
-- hides xmin
SELECT id, xmin, xmin IS NULL AS is_null FROM marked ORDER BY id;
CREATE TABLE seen AS SELECT id, m.xmin AS version FROM marked AS m;
UPDATE marked SET a = 'z' WHERE id = 1;
SELECT m.id, m.xmin = s.version AS same FROM marked m JOIN seen s USING (id) ORDER BY id;
UPDATE marked SET n = 3 FROM seen WHERE seen.id = marked.id AND marked.xmin = seen.version AND marked.id IN (1, 2);
SELECT id, a, n FROM marked ORDER BY id;
-- hides xmin
INSERT INTO marked VALUES (4, 'w', 0) RETURNING id, xmin, xmin IS NULL AS is_null;
-- hides xmin
UPDATE marked SET a = 'v' WHERE id = 4 RETURNING xmin, id;
SELECT l.id, r.xmin IS NULL AS no_version, r.ctid IS NULL AS no_place FROM marked l LEFT JOIN marked r ON r.id = l.id + 1 ORDER BY 1;
SELECT ctid, a FROM doubles WHERE ctid = '(0,3)';
SELECT count(DISTINCT ctid) FROM doubles;
SELECT ctid, b FROM doubles ORDER BY ctid;
UPDATE doubles SET b = 7 WHERE ctid = '(0,5)'::tid;
-- with ["(0,3)"]
DELETE FROM doubles WHERE ctid = $1;
DELETE FROM doubles AS one USING doubles AS other WHERE one.ctid > other.ctid AND one.a = other.a;
SELECT a, b FROM doubles ORDER BY b;
INSERT INTO doubles VALUES ('q', 8), ('q', 8);
DELETE FROM doubles WHERE ctid NOT IN (SELECT min(ctid) FROM doubles GROUP BY a, b);
SELECT a, b FROM doubles ORDER BY b;
DELETE FROM doubles WHERE ctid = ANY (ARRAY(SELECT ctid FROM doubles WHERE b > 7 LIMIT 10));
SELECT t.*, t.ctid IS NOT NULL AS placed FROM public.teams t ORDER BY id;
SELECT count(DISTINCT ctid) FROM members;
SELECT xmin FROM grown_ups;
SELECT ctid FROM (SELECT id FROM marked) AS q;
SELECT pg_typeof(xmin), pg_typeof(ctid), pg_typeof(marked.tableoid) FROM marked LIMIT 1;
-- differs: numbers of versions have no order, so nobody may ask for what came later
SELECT id FROM marked WHERE xmin::text::bigint >= 0;
SELECT 'x'::tid;
MERGE INTO marked USING seen ON marked.id = seen.id AND marked.xmin = seen.version WHEN MATCHED THEN DELETE;
SELECT id FROM marked ORDER BY id;
CREATE TABLE refused (a int CHECK (xmin IS NOT NULL));
CREATE TABLE refused (a int, b text GENERATED ALWAYS AS (ctid::text) STORED);
CREATE TABLE allowed (a int CHECK (tableoid IS NOT NULL));
INSERT INTO marked SELECT 10 + n, 'row', n FROM generate_series(1, 9) AS n;
INSERT INTO allowed SELECT n % 2000 FROM generate_series(1, 9000) AS n;
SELECT count(*), count(DISTINCT ctid) FROM allowed;
DELETE FROM allowed AS one USING allowed AS other WHERE one.a = other.a AND one.ctid < other.ctid;
SELECT count(*), count(DISTINCT a) FROM allowed;
DROP TABLE marked, seen, doubles, allowed;
