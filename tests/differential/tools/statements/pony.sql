SELECT tablename FROM pg_catalog.pg_tables WHERE schemaname = 'public' AND lower(tablename) = lower('p');
CREATE TABLE "p" (
  "id" SERIAL PRIMARY KEY,
  "name" TEXT NOT NULL,
  "n" DECIMAL(10, 2),
  "d" DATE,
  "j" JSONB NOT NULL,
  "arr" TEXT[] NOT NULL,
  "u" UUID
);
SELECT indexname FROM pg_catalog.pg_indexes WHERE schemaname = 'public' AND tablename = 'p' AND lower(indexname) = lower('idx_p__name');
CREATE INDEX "idx_p__name" ON "p" ("name");
SELECT tablename FROM pg_catalog.pg_tables WHERE schemaname = 'public' AND lower(tablename) = lower('c');
CREATE TABLE "c" (
  "id" SERIAL PRIMARY KEY,
  "m" TEXT NOT NULL,
  "p" INTEGER,
  CONSTRAINT "unq_c__m_p" UNIQUE ("m", "p")
);
SELECT indexname FROM pg_catalog.pg_indexes WHERE schemaname = 'public' AND tablename = 'c' AND lower(indexname) = lower('idx_c__p');
CREATE INDEX "idx_c__p" ON "c" ("p");
-- unordered
SELECT con.conname FROM pg_class cls JOIN pg_namespace ns ON cls.relnamespace = ns.oid JOIN pg_constraint con ON con.conrelid = cls.oid WHERE ns.nspname = 'public' AND cls.relname = 'c' AND con.contype = 'f' AND lower(con.conname) = lower('fk_c__p');
ALTER TABLE "c" ADD CONSTRAINT "fk_c__p" FOREIGN KEY ("p") REFERENCES "p" ("id") ON DELETE SET NULL;
CREATE TABLE "t" (
  "id" SERIAL PRIMARY KEY,
  "w" TEXT UNIQUE NOT NULL
);
CREATE TABLE "c_t" (
  "c" INTEGER NOT NULL,
  "t" INTEGER NOT NULL,
  PRIMARY KEY ("c", "t")
);
CREATE INDEX "idx_c_t" ON "c_t" ("t");
-- unordered
SELECT con.conname FROM pg_class cls JOIN pg_namespace ns ON cls.relnamespace = ns.oid JOIN pg_constraint con ON con.conrelid = cls.oid WHERE ns.nspname = 'public' AND cls.relname = 'c_t' AND con.contype = 'f' AND lower(con.conname) = lower('fk_c_t__c');
ALTER TABLE "c_t" ADD CONSTRAINT "fk_c_t__c" FOREIGN KEY ("c") REFERENCES "c" ("id") ON DELETE CASCADE;
ALTER TABLE "c_t" ADD CONSTRAINT "fk_c_t__t" FOREIGN KEY ("t") REFERENCES "t" ("id") ON DELETE CASCADE;
SELECT "c"."id", "c"."m", "c"."p"
FROM "c" "c"
WHERE 0 = 1;
SELECT "c_t"."c", "c_t"."t"
FROM "c_t" "c_t"
WHERE 0 = 1;
SELECT "p"."id", "p"."name", "p"."n", "p"."d", "p"."j", "p"."arr", "p"."u"
FROM "p" "p"
WHERE 0 = 1;
SELECT "t"."id", "t"."w"
FROM "t" "t"
WHERE 0 = 1;
INSERT INTO "p" ("name", "n", "j", "arr") VALUES ('a', 1.5, '{"a": [1, 2]}', ARRAY['x']) RETURNING "id";
INSERT INTO "c" ("m", "p") VALUES ('m', 1) RETURNING "id";
INSERT INTO "t" ("w") VALUES ('w') RETURNING "id";
INSERT INTO "c_t" ("c", "t") VALUES (1, 1);
SELECT DISTINCT "x"."name"
FROM "p" "x"
WHERE "x"."n" > 1;
SELECT "x"."name", COUNT(DISTINCT "c"."id")
FROM "p" "x"
  LEFT JOIN "c" "c"
    ON "x"."id" = "c"."p"
GROUP BY "x"."name";
SELECT COUNT(*)
FROM "p" "x"
WHERE ("x"."j" #>> '{a,0}')::int = 1;
SELECT MAX("x"."n")
FROM "p" "x";
SELECT "id", "name", "n", "d", "j", "arr", "u"
FROM "p"
WHERE "name" = 'a'
LIMIT 2;
SELECT "c"."id", "c"."m", "c"."p"
FROM "c" "c"
WHERE "c"."p" = 1
ORDER BY 1
LIMIT 1;
SELECT DISTINCT "x"."name"
FROM "p" "x"
WHERE 'x' = ANY("x"."arr");
SELECT "x"."id", "x"."name", "x"."n", "x"."d", "x"."j", "x"."arr", "x"."u"
FROM "p" "x", "c" "y"
WHERE "y"."m" LIKE 'm%'
  AND "x"."id" = "y"."p"
ORDER BY "x"."id" DESC
LIMIT 2;
UPDATE "p"
SET "name" = 'b'
WHERE "id" = 1
  AND "name" = 'a'
  AND "n" = 1.5
  AND "j" = '{"a": [1, 2]}'
  AND "arr" = ARRAY['x'];
SELECT MAX("id")
FROM "p";
SELECT "p"."id", "p"."name", "p"."n", "p"."d", "p"."j", "p"."arr", "p"."u"
FROM "p" "p"
ORDER BY random()
LIMIT 1;
SELECT "id", "name", "n", "d", "j", "arr", "u"
FROM "p"
WHERE "name" = 'b'
LIMIT 2
FOR UPDATE;
SELECT "c"."id", "c"."m", "c"."p"
FROM "c" "c"
WHERE 0 = 1;
SELECT "c_t"."c", "c_t"."t"
FROM "c_t" "c_t"
WHERE 0 = 1;
SELECT "p"."id", "p"."name", "p"."n", "p"."d", "p"."j", "p"."arr", "p"."u"
FROM "p" "p"
WHERE 0 = 1;
SELECT "t"."id", "t"."w"
FROM "t" "t"
WHERE 0 = 1;
SELECT tablename FROM pg_catalog.pg_tables WHERE schemaname = 'public' AND tablename = 'p';
SELECT tablename FROM pg_catalog.pg_tables WHERE schemaname = 'public' AND tablename = 'c';
DROP TABLE "p" CASCADE;
DROP TABLE "c" CASCADE;
DROP TABLE "c_t" CASCADE;
DROP TABLE "t" CASCADE;
