SELECT tablename FROM pg_catalog.pg_tables WHERE schemaname = COALESCE(NULL, current_schema()) ORDER BY tablename;
SELECT tablename FROM pg_catalog.pg_tables WHERE schemaname = COALESCE('sales', current_schema()) ORDER BY tablename;
-- hides definition
SELECT viewname, definition FROM pg_catalog.pg_views WHERE schemaname = COALESCE(NULL, current_schema()) ORDER BY viewname;
-- hides definition
SELECT viewname, definition FROM pg_catalog.pg_views WHERE schemaname = COALESCE('sales', current_schema()) ORDER BY viewname;
SELECT tablename FROM pg_catalog.pg_tables WHERE schemaname = COALESCE(NULL, current_schema()) ORDER BY tablename;
SELECT c.column_name, c.is_nullable, c.data_type,
                c.column_default,
                pg_catalog.format_type(a.atttypid, a.atttypmod),
                c.is_identity
            FROM information_schema.columns AS c
            INNER JOIN pg_catalog.pg_namespace AS n
                ON (n.nspname = c.table_schema)
            INNER JOIN pg_catalog.pg_class AS t
                ON (t.relname = c.table_name AND t.relnamespace = n.oid)
            INNER JOIN pg_catalog.pg_attribute AS a
                ON (a.attrelid = t.oid AND a.attname = c.column_name)
            WHERE c.table_name = 'Odd Names'
                AND c.table_schema = COALESCE(NULL, current_schema())
                AND NOT a.attisdropped
            ORDER BY c.ordinal_position;
SELECT kc.column_name
            FROM information_schema.table_constraints AS tc
            INNER JOIN information_schema.key_column_usage AS kc ON (
                tc.table_name = kc.table_name AND
                tc.table_schema = kc.table_schema AND
                tc.constraint_name = kc.constraint_name)
            WHERE
                tc.constraint_type = 'PRIMARY KEY' AND
                tc.table_name = 'Odd Names' AND
                tc.table_schema = COALESCE(NULL, current_schema())
            ORDER BY kc.ordinal_position;
SELECT
                i.relname, idxs.indexdef, idx.indisunique,
                ARRAY(
                    SELECT pg_get_indexdef(idx.indexrelid, k + 1, TRUE)
                    FROM generate_subscripts(idx.indkey, 1) AS k
                    ORDER BY k)
            FROM pg_catalog.pg_class AS t
            INNER JOIN pg_catalog.pg_namespace AS n ON t.relnamespace = n.oid
            INNER JOIN pg_catalog.pg_index AS idx ON t.oid = idx.indrelid
            INNER JOIN pg_catalog.pg_class AS i ON idx.indexrelid = i.oid
            INNER JOIN pg_catalog.pg_indexes AS idxs ON (
                idxs.tablename = t.relname
                AND idxs.indexname = i.relname
                AND idxs.schemaname = n.nspname)
            WHERE t.relname = 'Odd Names' AND t.relkind = 'r'
                AND n.nspname = COALESCE(NULL, current_schema())
            ORDER BY idx.indisunique DESC, i.relname;
SELECT kc.column_name
            FROM information_schema.table_constraints AS tc
            INNER JOIN information_schema.key_column_usage AS kc ON (
                tc.table_name = kc.table_name AND
                tc.table_schema = kc.table_schema AND
                tc.constraint_name = kc.constraint_name)
            WHERE
                tc.constraint_type = 'PRIMARY KEY' AND
                tc.table_name = 'Odd Names' AND
                tc.table_schema = COALESCE(NULL, current_schema())
            ORDER BY kc.ordinal_position;
-- unordered
SELECT DISTINCT
                kcu.column_name, ccu.table_name, ccu.column_name,
                tc.constraint_name, rc.delete_rule, rc.update_rule
            FROM information_schema.table_constraints AS tc
            JOIN information_schema.key_column_usage AS kcu
                ON (tc.constraint_name = kcu.constraint_name AND
                    tc.constraint_schema = kcu.constraint_schema AND
                    tc.table_name = kcu.table_name AND
                    tc.table_schema = kcu.table_schema)
            JOIN information_schema.constraint_column_usage AS ccu
                ON (ccu.constraint_name = tc.constraint_name AND
                    ccu.constraint_schema = tc.constraint_schema)
            JOIN information_schema.referential_constraints AS rc
                ON (rc.constraint_name = tc.constraint_name AND
                    rc.constraint_schema = tc.constraint_schema)
            WHERE
                tc.constraint_type = 'FOREIGN KEY' AND
                tc.table_name = 'Odd Names' AND
                tc.table_schema = COALESCE(NULL, current_schema());
SELECT c.column_name, c.is_nullable, c.data_type,
                c.column_default,
                pg_catalog.format_type(a.atttypid, a.atttypmod),
                c.is_identity
            FROM information_schema.columns AS c
            INNER JOIN pg_catalog.pg_namespace AS n
                ON (n.nspname = c.table_schema)
            INNER JOIN pg_catalog.pg_class AS t
                ON (t.relname = c.table_name AND t.relnamespace = n.oid)
            INNER JOIN pg_catalog.pg_attribute AS a
                ON (a.attrelid = t.oid AND a.attname = c.column_name)
            WHERE c.table_name = 'members'
                AND c.table_schema = COALESCE(NULL, current_schema())
                AND NOT a.attisdropped
            ORDER BY c.ordinal_position;
SELECT
                i.relname, idxs.indexdef, idx.indisunique,
                ARRAY(
                    SELECT pg_get_indexdef(idx.indexrelid, k + 1, TRUE)
                    FROM generate_subscripts(idx.indkey, 1) AS k
                    ORDER BY k)
            FROM pg_catalog.pg_class AS t
            INNER JOIN pg_catalog.pg_namespace AS n ON t.relnamespace = n.oid
            INNER JOIN pg_catalog.pg_index AS idx ON t.oid = idx.indrelid
            INNER JOIN pg_catalog.pg_class AS i ON idx.indexrelid = i.oid
            INNER JOIN pg_catalog.pg_indexes AS idxs ON (
                idxs.tablename = t.relname
                AND idxs.indexname = i.relname
                AND idxs.schemaname = n.nspname)
            WHERE t.relname = 'members' AND t.relkind = 'r'
                AND n.nspname = COALESCE(NULL, current_schema())
            ORDER BY idx.indisunique DESC, i.relname;
-- unordered
SELECT DISTINCT
                kcu.column_name, ccu.table_name, ccu.column_name,
                tc.constraint_name, rc.delete_rule, rc.update_rule
            FROM information_schema.table_constraints AS tc
            JOIN information_schema.key_column_usage AS kcu
                ON (tc.constraint_name = kcu.constraint_name AND
                    tc.constraint_schema = kcu.constraint_schema AND
                    tc.table_name = kcu.table_name AND
                    tc.table_schema = kcu.table_schema)
            JOIN information_schema.constraint_column_usage AS ccu
                ON (ccu.constraint_name = tc.constraint_name AND
                    ccu.constraint_schema = tc.constraint_schema)
            JOIN information_schema.referential_constraints AS rc
                ON (rc.constraint_name = tc.constraint_name AND
                    rc.constraint_schema = tc.constraint_schema)
            WHERE
                tc.constraint_type = 'FOREIGN KEY' AND
                tc.table_name = 'members' AND
                tc.table_schema = COALESCE(NULL, current_schema());
SELECT tablename FROM pg_catalog.pg_tables WHERE schemaname = COALESCE('sales', current_schema()) ORDER BY tablename;
SELECT c.column_name, c.is_nullable, c.data_type,
                c.column_default,
                pg_catalog.format_type(a.atttypid, a.atttypmod),
                c.is_identity
            FROM information_schema.columns AS c
            INNER JOIN pg_catalog.pg_namespace AS n
                ON (n.nspname = c.table_schema)
            INNER JOIN pg_catalog.pg_class AS t
                ON (t.relname = c.table_name AND t.relnamespace = n.oid)
            INNER JOIN pg_catalog.pg_attribute AS a
                ON (a.attrelid = t.oid AND a.attname = c.column_name)
            WHERE c.table_name = 'lines'
                AND c.table_schema = COALESCE('sales', current_schema())
                AND NOT a.attisdropped
            ORDER BY c.ordinal_position;
SELECT kc.column_name
            FROM information_schema.table_constraints AS tc
            INNER JOIN information_schema.key_column_usage AS kc ON (
                tc.table_name = kc.table_name AND
                tc.table_schema = kc.table_schema AND
                tc.constraint_name = kc.constraint_name)
            WHERE
                tc.constraint_type = 'PRIMARY KEY' AND
                tc.table_name = 'lines' AND
                tc.table_schema = COALESCE('sales', current_schema())
            ORDER BY kc.ordinal_position;
SELECT
                i.relname, idxs.indexdef, idx.indisunique,
                ARRAY(
                    SELECT pg_get_indexdef(idx.indexrelid, k + 1, TRUE)
                    FROM generate_subscripts(idx.indkey, 1) AS k
                    ORDER BY k)
            FROM pg_catalog.pg_class AS t
            INNER JOIN pg_catalog.pg_namespace AS n ON t.relnamespace = n.oid
            INNER JOIN pg_catalog.pg_index AS idx ON t.oid = idx.indrelid
            INNER JOIN pg_catalog.pg_class AS i ON idx.indexrelid = i.oid
            INNER JOIN pg_catalog.pg_indexes AS idxs ON (
                idxs.tablename = t.relname
                AND idxs.indexname = i.relname
                AND idxs.schemaname = n.nspname)
            WHERE t.relname = 'lines' AND t.relkind = 'r'
                AND n.nspname = COALESCE('sales', current_schema())
            ORDER BY idx.indisunique DESC, i.relname;
SELECT kc.column_name
            FROM information_schema.table_constraints AS tc
            INNER JOIN information_schema.key_column_usage AS kc ON (
                tc.table_name = kc.table_name AND
                tc.table_schema = kc.table_schema AND
                tc.constraint_name = kc.constraint_name)
            WHERE
                tc.constraint_type = 'PRIMARY KEY' AND
                tc.table_name = 'lines' AND
                tc.table_schema = COALESCE('sales', current_schema())
            ORDER BY kc.ordinal_position;
-- unordered
SELECT DISTINCT
                kcu.column_name, ccu.table_name, ccu.column_name,
                tc.constraint_name, rc.delete_rule, rc.update_rule
            FROM information_schema.table_constraints AS tc
            JOIN information_schema.key_column_usage AS kcu
                ON (tc.constraint_name = kcu.constraint_name AND
                    tc.constraint_schema = kcu.constraint_schema AND
                    tc.table_name = kcu.table_name AND
                    tc.table_schema = kcu.table_schema)
            JOIN information_schema.constraint_column_usage AS ccu
                ON (ccu.constraint_name = tc.constraint_name AND
                    ccu.constraint_schema = tc.constraint_schema)
            JOIN information_schema.referential_constraints AS rc
                ON (rc.constraint_name = tc.constraint_name AND
                    rc.constraint_schema = tc.constraint_schema)
            WHERE
                tc.constraint_type = 'FOREIGN KEY' AND
                tc.table_name = 'lines' AND
                tc.table_schema = COALESCE('sales', current_schema());
SELECT c.column_name, c.is_nullable, c.data_type,
                c.column_default,
                pg_catalog.format_type(a.atttypid, a.atttypmod),
                c.is_identity
            FROM information_schema.columns AS c
            INNER JOIN pg_catalog.pg_namespace AS n
                ON (n.nspname = c.table_schema)
            INNER JOIN pg_catalog.pg_class AS t
                ON (t.relname = c.table_name AND t.relnamespace = n.oid)
            INNER JOIN pg_catalog.pg_attribute AS a
                ON (a.attrelid = t.oid AND a.attname = c.column_name)
            WHERE c.table_name = 'orders'
                AND c.table_schema = COALESCE('sales', current_schema())
                AND NOT a.attisdropped
            ORDER BY c.ordinal_position;
SELECT
                i.relname, idxs.indexdef, idx.indisunique,
                ARRAY(
                    SELECT pg_get_indexdef(idx.indexrelid, k + 1, TRUE)
                    FROM generate_subscripts(idx.indkey, 1) AS k
                    ORDER BY k)
            FROM pg_catalog.pg_class AS t
            INNER JOIN pg_catalog.pg_namespace AS n ON t.relnamespace = n.oid
            INNER JOIN pg_catalog.pg_index AS idx ON t.oid = idx.indrelid
            INNER JOIN pg_catalog.pg_class AS i ON idx.indexrelid = i.oid
            INNER JOIN pg_catalog.pg_indexes AS idxs ON (
                idxs.tablename = t.relname
                AND idxs.indexname = i.relname
                AND idxs.schemaname = n.nspname)
            WHERE t.relname = 'orders' AND t.relkind = 'r'
                AND n.nspname = COALESCE('sales', current_schema())
            ORDER BY idx.indisunique DESC, i.relname;
-- unordered
SELECT DISTINCT
                kcu.column_name, ccu.table_name, ccu.column_name,
                tc.constraint_name, rc.delete_rule, rc.update_rule
            FROM information_schema.table_constraints AS tc
            JOIN information_schema.key_column_usage AS kcu
                ON (tc.constraint_name = kcu.constraint_name AND
                    tc.constraint_schema = kcu.constraint_schema AND
                    tc.table_name = kcu.table_name AND
                    tc.table_schema = kcu.table_schema)
            JOIN information_schema.constraint_column_usage AS ccu
                ON (ccu.constraint_name = tc.constraint_name AND
                    ccu.constraint_schema = tc.constraint_schema)
            JOIN information_schema.referential_constraints AS rc
                ON (rc.constraint_name = tc.constraint_name AND
                    rc.constraint_schema = tc.constraint_schema)
            WHERE
                tc.constraint_type = 'FOREIGN KEY' AND
                tc.table_name = 'orders' AND
                tc.table_schema = COALESCE('sales', current_schema());
-- unordered
SELECT COUNT(*) FROM pg_class, pg_namespace
            WHERE relkind='S'
                AND pg_class.relnamespace = pg_namespace.oid
                AND relname='numbers'
                AND nspname=COALESCE(NULL, current_schema());
-- columns: PostgreSQL 16 has some more of its own
select oid, typname, format_type(oid, NULL) from pg_type;
SELECT a.attname, a.atttypid FROM pg_catalog.pg_attribute AS a INNER JOIN pg_catalog.pg_class AS t ON a.attrelid = t.oid INNER JOIN pg_catalog.pg_namespace AS n ON t.relnamespace = n.oid WHERE t.relname = 'Odd Names' AND n.nspname = COALESCE(NULL, current_schema()) AND a.attnum > 0 AND NOT a.attisdropped ORDER BY a.attnum;
SELECT a.attname, a.atttypid FROM pg_catalog.pg_attribute AS a INNER JOIN pg_catalog.pg_class AS t ON a.attrelid = t.oid INNER JOIN pg_catalog.pg_namespace AS n ON t.relnamespace = n.oid WHERE t.relname = 'members' AND n.nspname = COALESCE(NULL, current_schema()) AND a.attnum > 0 AND NOT a.attisdropped ORDER BY a.attnum;
CREATE TABLE IF NOT EXISTS "a" ("id" SERIAL NOT NULL PRIMARY KEY, "name" VARCHAR(255) NOT NULL, "n" INTEGER, "made" TIMESTAMP, "d" NUMERIC(10, 5) NOT NULL);
CREATE INDEX IF NOT EXISTS "a_name" ON "a" ("name");
CREATE TABLE IF NOT EXISTS "b" ("id" SERIAL NOT NULL PRIMARY KEY, "a_id" INTEGER NOT NULL, "t" TEXT NOT NULL, "u" UUID, "j" JSONB, FOREIGN KEY ("a_id") REFERENCES "a" ("id") ON DELETE CASCADE);
CREATE INDEX IF NOT EXISTS "b_a_id" ON "b" ("a_id");
CREATE UNIQUE INDEX IF NOT EXISTS "b_t" ON "b" ("t");
CREATE INDEX IF NOT EXISTS "b_j" ON "b" USING GIN ("j");
CREATE UNIQUE INDEX IF NOT EXISTS "b_a_id_t" ON "b" ("a_id", "t");
INSERT INTO "a" ("name", "n", "d") VALUES ('x', 1, 0) RETURNING "a"."id";
INSERT INTO "a" ("name", "n", "d") VALUES ('y', 2, 0), ('z', NULL, 0) RETURNING "a"."id";
INSERT INTO "b" ("a_id", "t", "j") VALUES (1, 't', '{"a": [1]}') RETURNING "b"."id";
INSERT INTO "b" ("a_id", "t") VALUES (1, 't') ON CONFLICT ("t") DO UPDATE SET "a_id" = EXCLUDED."a_id" RETURNING "b"."id";
UPDATE "a" SET "n" = ("a"."n" + 1) WHERE ("a"."name" = 'x');
SELECT "t1"."id", "t1"."name", "t1"."n", "t1"."made", "t1"."d", COUNT("t2"."id") AS "c" FROM "a" AS "t1" LEFT OUTER JOIN "b" AS "t2" ON ("t2"."a_id" = "t1"."id") GROUP BY "t1"."id", "t1"."name", "t1"."n", "t1"."made", "t1"."d" ORDER BY "t1"."id";
SELECT "t1"."id", "t1"."name", "t1"."n", "t1"."made", "t1"."d" FROM "a" AS "t1" WHERE (("t1"."name" ILIKE '%x%') OR ("t1"."n" IS NULL)) ORDER BY "t1"."id";
SELECT "t1"."id", "t1"."a_id", "t1"."t", "t1"."u", "t1"."j" FROM "b" AS "t1" WHERE ("t1"."j"->'a' @> '[1]');
SELECT "t1"."id", "t1"."name", "t1"."n", "t1"."made", "t1"."d" FROM "a" AS "t1" WHERE ("t1"."name" = 'x') LIMIT 1 OFFSET 0;
ALTER TABLE "a" ADD COLUMN "extra" INTEGER;
UPDATE "a" SET "extra" = 3;
ALTER TABLE "a" ALTER COLUMN "extra" SET NOT NULL;
ALTER TABLE "a" RENAME COLUMN "n" TO "number";
ALTER TABLE "a" ALTER COLUMN "d" DROP NOT NULL;
CREATE INDEX "a_extra" ON "a" ("extra");
-- unordered
SELECT pg_attribute.attname
            FROM pg_index, pg_class, pg_attribute
            WHERE
                pg_class.oid = '"b"'::regclass AND
                indrelid = pg_class.oid AND
                pg_attribute.attrelid = pg_class.oid AND
                pg_attribute.attnum = any(pg_index.indkey) AND
                indisprimary;
SELECT 1
                FROM information_schema.sequences
                WHERE LOWER(sequence_name) = LOWER('b_id_seq')
                    AND sequence_schema = COALESCE(NULL, current_schema());
ALTER TABLE "b" RENAME TO "bb";
ALTER TABLE "b_id_seq" RENAME TO "bb_id_seq";
ALTER TABLE "a" ALTER COLUMN "extra" TYPE BIGINT;
ALTER TABLE "a" DROP COLUMN "made" CASCADE;
drop table bb, a cascade;
