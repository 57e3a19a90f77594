CREATE TABLE IF NOT EXISTS "tt_team" (
    "id" SERIAL NOT NULL PRIMARY KEY,
    "name" VARCHAR(50) NOT NULL UNIQUE,
    "data" JSONB NOT NULL,
    "made" TIMESTAMPTZ NOT NULL
); /**/
COMMENT ON TABLE "tt_team" IS 'teams'; /**/
CREATE TABLE IF NOT EXISTS "tt_person" (
    "id" UUID NOT NULL PRIMARY KEY,
    "name" TEXT NOT NULL,
    "n" DECIMAL(10,2),
    "d" DATE,
    "tdelta" BIGINT,
    "b" BYTEA,
    "ok" BOOL NOT NULL,
    "team_id" INT REFERENCES "tt_team" ("id") ON DELETE CASCADE
); /**/
CREATE INDEX IF NOT EXISTS "idx_tt_person_name_eb2f6a" ON "tt_person" ("name", "n"); /**/
COMMENT ON COLUMN "tt_person"."name" IS 'the name'; /**/
CREATE TABLE IF NOT EXISTS "tt_person_tt_person" (
    "tt_person_id" UUID NOT NULL REFERENCES "tt_person" ("id") ON DELETE CASCADE,
    "person_id" UUID NOT NULL REFERENCES "tt_person" ("id") ON DELETE CASCADE
); /**/
CREATE UNIQUE INDEX IF NOT EXISTS "uidx_tt_person_t_tt_pers_1b1f89" ON "tt_person_tt_person" ("tt_person_id", "person_id");
SELECT pg_advisory_unlock_all(); /**/
CLOSE ALL; /**/
UNLISTEN *; /**/
RESET ALL;
-- with ["a", "{}", "2026-11-19 20:34:42.582447+00"]
INSERT INTO "tt_team" ("name","data","made") VALUES ($1,$2,$3) RETURNING "id";
SELECT pg_advisory_unlock_all(); /**/
CLOSE ALL; /**/
UNLISTEN *; /**/
RESET ALL;
-- with ["81d4b347-a72d-419b-bcb3-7dd99e331df1", "p", "1.50", null, null, null, "t", "1"]
INSERT INTO "tt_person" ("id","name","n","d","tdelta","b","ok","team_id") VALUES ($1,$2,$3,$4,$5,$6,$7,$8);
-- with ["81d4b347-a72d-419b-bcb3-7dd99e331df1", "b20efda1-896c-4a55-a021-2354dc7f2f1e"]
SELECT "person_id" FROM "tt_person_tt_person" WHERE "tt_person_id"=$1 AND "person_id"=$2;
-- with ["b20efda1-896c-4a55-a021-2354dc7f2f1e", "81d4b347-a72d-419b-bcb3-7dd99e331df1"]
INSERT INTO "tt_person_tt_person" ("person_id","tt_person_id") VALUES ($1,$2);
SELECT "id" "0","name" "1" FROM "tt_team";
-- with ["a"]
SELECT COUNT(*) FROM "tt_person" LEFT OUTER JOIN "tt_team" "tt_person__team" ON "tt_person__team"."id"="tt_person"."team_id" WHERE "tt_person__team"."name"=$1;
SELECT "name" "0" FROM "tt_person" ORDER BY "name" ASC;
SELECT "tt_team"."name" "name",COUNT("tt_person"."id") "c",SUM("tt_person"."n") "s" FROM "tt_team" LEFT OUTER JOIN "tt_person" ON "tt_team"."id"="tt_person"."team_id" GROUP BY "tt_team"."made","tt_team"."data","tt_team"."name","tt_team"."id";
-- with ["3", "p"]
UPDATE "tt_person" SET "n"=$1 WHERE "name"=$2;
-- with ["%X%"]
DELETE FROM "tt_person" WHERE UPPER(CAST("name" AS VARCHAR)) LIKE UPPER($1) ESCAPE '\';
select count(*) as n from tt_person;
-- with ["zz", "2"]
SELECT "ok","d","id","tdelta","n","name","b","team_id" FROM "tt_person" WHERE "name"=$1 LIMIT $2;
-- with ["a", "2"]
SELECT "made","data","name","id" FROM "tt_team" WHERE "name"=$1 LIMIT $2 FOR UPDATE;
-- with ["a", "{\"a\": 1}", "2026-11-19 20:34:42.582447+00", "1"]
UPDATE "tt_team" SET "name"=$1,"data"=$2,"made"=$3 WHERE "id"=$4;
-- with ["{\"a\": 1}"]
SELECT COUNT(*) FROM "tt_team" WHERE "data"@>$1;
