CREATE TABLE "yoyo_lock" ("locked" INT DEFAULT 1, "ctime" TIMESTAMP,"pid" INT NOT NULL,PRIMARY KEY ("locked"));
CREATE TABLE "yoyo_tmp_2rpWqgKNEQ" ("id" INT PRIMARY KEY);
DROP TABLE "yoyo_tmp_2rpWqgKNEQ";
-- with ["2026-11-19 20:35:42.543338", "31148"]
INSERT INTO "yoyo_lock"
                        ("locked", "ctime", "pid")
                        VALUES (1, $1, $2);
SELECT current_schema;
-- with ["public"]
-- unordered
SELECT table_name FROM information_schema.tables WHERE table_schema = $1;
SELECT current_schema;
-- with ["public"]
-- unordered
SELECT table_name FROM information_schema.tables WHERE table_schema = $1;
CREATE TABLE "_yoyo_migration" (id VARCHAR(191) NOT NULL PRIMARY KEY,ctime TIMESTAMP);
CREATE TABLE "_yoyo_log" (
            "id" VARCHAR(36),
            "migration_hash" VARCHAR(64),
            "migration_id" VARCHAR(255),
            "operation" VARCHAR(10),
            "username" VARCHAR(255),
            "hostname" VARCHAR(255),
            "comment" VARCHAR(255),
            "created_at_utc" TIMESTAMP,
            PRIMARY KEY ("id")
        );
CREATE TABLE "_yoyo_version" (
            "version" INT NOT NULL PRIMARY KEY,
            "installed_at_utc" TIMESTAMP
        );
SELECT "id", "ctime" FROM "_yoyo_migration";
DROP TABLE "_yoyo_migration";
CREATE TABLE "_yoyo_migration" (
            "migration_hash" VARCHAR(64),
            "migration_id" VARCHAR(255),
            "applied_at_utc" TIMESTAMP,
            PRIMARY KEY ("migration_hash")
        );
INSERT INTO "_yoyo_migration"
        SELECT "migration_hash", "migration_id", "created_at_utc"
        FROM "_yoyo_log";
-- with ["2", "2026-11-19 20:35:42.576381"]
INSERT INTO "_yoyo_version" VALUES ($1, $2);
SELECT "migration_hash" FROM "_yoyo_migration" ORDER by "applied_at_utc";
create table yy (id int);
-- with ["ca36e41c-e458-11f1-9878-02fc00000001", "888b19a43b151683c87895f6211d9f8640f97bdc8ef32f03dbe057c8f5e56d32", "0001", "apply", "root", "localhost", "2026-11-19 20:35:42.606723"]
INSERT INTO "_yoyo_log" ("id", "migration_hash", "migration_id", "operation", "username", "hostname", "created_at_utc") VALUES ($1, $2, $3, $4, $5, $6, $7);
-- with ["888b19a43b151683c87895f6211d9f8640f97bdc8ef32f03dbe057c8f5e56d32", "0001", "2026-11-19 20:35:42.611909"]
INSERT INTO "_yoyo_migration" ("migration_hash", "migration_id", "applied_at_utc") VALUES ($1, $2, $3);
SELECT "migration_hash" FROM "_yoyo_migration" ORDER by "applied_at_utc";
drop table yy;
-- with ["888b19a43b151683c87895f6211d9f8640f97bdc8ef32f03dbe057c8f5e56d32"]
DELETE FROM "_yoyo_migration" WHERE "migration_hash" = $1;
-- with ["31148"]
DELETE FROM "yoyo_lock" WHERE "pid"=$1;
