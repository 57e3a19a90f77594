"""\\h: the forms of SQL's statements, in short. docs/sql.md has what they mean here."""

from __future__ import annotations

from typing import Final

from qserver.cli.layouts.text_cells import padded
from qserver.cli.shell.commands.call import Call
from qserver.errors import InvalidRequest

_COLUMNS: Final = 3

FORMS: Final = {
    "ALTER INDEX": "ALTER INDEX [IF EXISTS] name RENAME TO new_name",
    "ALTER SEQUENCE": (
        "ALTER SEQUENCE [IF EXISTS] name [INCREMENT [BY] n] [MINVALUE n] [MAXVALUE n]\n"
        "  [START [WITH] n] [RESTART [[WITH] n]] [CACHE n] [[NO] CYCLE] [OWNED BY table.column]"
    ),
    "ALTER TABLE": (
        "ALTER TABLE [IF EXISTS] name action [, …]\n\n"
        "action:  ADD [COLUMN] column type [constraint …]\n"
        "         DROP [COLUMN] [IF EXISTS] column [CASCADE]\n"
        "         ALTER [COLUMN] column TYPE type [USING expression]\n"
        "         ALTER [COLUMN] column SET DEFAULT expression | DROP DEFAULT\n"
        "         ALTER [COLUMN] column SET NOT NULL | DROP NOT NULL\n"
        "         ADD [CONSTRAINT name] constraint | DROP CONSTRAINT name\n"
        "         RENAME [COLUMN] column TO new_name | RENAME TO new_name"
    ),
    "ALTER TYPE": "ALTER TYPE name ADD VALUE [IF NOT EXISTS] 'label' [BEFORE | AFTER 'label']",
    "BEGIN": (
        "BEGIN [WORK | TRANSACTION] [READ ONLY | READ WRITE] [ISOLATION LEVEL level]\n\n"
        "Every transaction is serializable, whatever level is named."
    ),
    "COMMENT": "COMMENT ON TABLE | COLUMN | VIEW | INDEX | … name IS 'text' | NULL",
    "COMMIT": "COMMIT [WORK | TRANSACTION]",
    "CREATE INDEX": (
        "CREATE [UNIQUE] INDEX [IF NOT EXISTS] [name] ON table\n"
        "  (column | (expression) [ASC | DESC] [NULLS FIRST | LAST] [, …]) [WHERE condition]"
    ),
    "CREATE SCHEMA": "CREATE SCHEMA [IF NOT EXISTS] name",
    "CREATE SEQUENCE": (
        "CREATE SEQUENCE [IF NOT EXISTS] name [AS type] [INCREMENT [BY] n] [MINVALUE n]\n"
        "  [MAXVALUE n] [START [WITH] n] [CACHE n] [[NO] CYCLE]"
    ),
    "CREATE TABLE": (
        "CREATE [TEMP] TABLE [IF NOT EXISTS] name (\n"
        "  column type [DEFAULT expression] [NOT NULL] [PRIMARY KEY] [UNIQUE] [CHECK (condition)]\n"
        "    [REFERENCES table [(column)]] [GENERATED ALWAYS AS (expression) STORED]\n"
        "    [GENERATED ALWAYS | BY DEFAULT AS IDENTITY] [, …]\n"
        "  [CONSTRAINT name] PRIMARY KEY (column [, …]) | UNIQUE (…) | CHECK (condition) |\n"
        "    FOREIGN KEY (column [, …]) REFERENCES table [(column, …)] [ON DELETE action] [, …]\n"
        ")"
    ),
    "CREATE TABLE AS": "CREATE [TEMP] TABLE [IF NOT EXISTS] name AS query [WITH [NO] DATA]",
    "CREATE TYPE": "CREATE TYPE name AS ENUM ('label' [, …])",
    "CREATE VIEW": "CREATE [OR REPLACE] [TEMP] VIEW name [(column [, …])] AS query",
    "DELETE": (
        "DELETE FROM table [[AS] alias] [USING tables] [WHERE condition]\n"
        "  [RETURNING expression [, …]]"
    ),
    "DROP INDEX": "DROP INDEX [IF EXISTS] name [, …]",
    "DROP SCHEMA": "DROP SCHEMA [IF EXISTS] name [, …] [CASCADE | RESTRICT]",
    "DROP SEQUENCE": "DROP SEQUENCE [IF EXISTS] name [, …] [CASCADE | RESTRICT]",
    "DROP TABLE": "DROP TABLE [IF EXISTS] name [, …] [CASCADE | RESTRICT]",
    "DROP TYPE": "DROP TYPE [IF EXISTS] name [, …] [CASCADE | RESTRICT]",
    "DROP VIEW": "DROP VIEW [IF EXISTS] name [, …] [CASCADE | RESTRICT]",
    "EXPLAIN": "EXPLAIN [ANALYZE] | [(ANALYZE, FORMAT TEXT | JSON)] statement",
    "INSERT": (
        "INSERT INTO table [(column [, …])] VALUES (expression | DEFAULT [, …]) [, …] | query\n"
        "  [ON CONFLICT [(column [, …])] DO NOTHING | DO UPDATE SET column = expression [, …]]\n"
        "  [RETURNING expression [, …]]"
    ),
    "MERGE": (
        "MERGE INTO table USING source ON condition\n"
        "  WHEN MATCHED [AND condition] THEN UPDATE SET … | DELETE | DO NOTHING\n"
        "  WHEN NOT MATCHED [AND condition] THEN INSERT … | DO NOTHING"
    ),
    "RELEASE SAVEPOINT": "RELEASE [SAVEPOINT] name",
    "RESET": "RESET setting | ALL",
    "ROLLBACK": "ROLLBACK [WORK | TRANSACTION] [TO [SAVEPOINT] name]",
    "SAVEPOINT": "SAVEPOINT name",
    "SELECT": (
        "[WITH [RECURSIVE] name [(column [, …])] AS (query) [, …]]\n"
        "SELECT [DISTINCT [ON (expression [, …])]] expression [[AS] name] [, …]\n"
        "  [FROM table | (query) | function(…) [[AS] alias] [JOIN … ON condition] [, …]]\n"
        "  [WHERE condition] [GROUP BY expression [, …]] [HAVING condition]\n"
        "  [WINDOW name AS (…)] [UNION | INTERSECT | EXCEPT [ALL] query]\n"
        "  [ORDER BY expression [ASC | DESC] [NULLS FIRST | LAST] [, …]]\n"
        "  [LIMIT count] [OFFSET count]"
    ),
    "SET": "SET [SESSION | LOCAL] setting TO value | DEFAULT",
    "SHOW": "SHOW setting | ALL",
    "TRUNCATE": "TRUNCATE [TABLE] name [, …] [RESTART IDENTITY] [CASCADE]",
    "UPDATE": (
        "UPDATE table [[AS] alias] SET column = expression [, …] [FROM tables]\n"
        "  [WHERE condition] [RETURNING expression [, …]]"
    ),
    "VALUES": "VALUES (expression [, …]) [, …] [ORDER BY …] [LIMIT count]",
}


def run(call: Call) -> None:
    wanted = " ".join(call.line.upper().rstrip(";").split())
    if not wanted:
        call.shell.write(_names())
        return
    found = [name for name in FORMS if wanted == "*" or name == wanted]
    found = found or [name for name in FORMS if name.startswith(f"{wanted} ")]
    found = found or [name for name in FORMS if wanted.startswith(f"{name} ")]
    if not found:
        raise InvalidRequest(
            f'no help available for "{call.line}"', hint="\\h alone lists the statements."
        )
    call.shell.write("\n\n".join(FORMS[name] for name in found) + "\n")


def _names() -> str:
    names = list(FORMS)
    count = -(-len(names) // _COLUMNS)
    widest = max(map(len, names)) + 2
    lines = (
        "".join(padded(name, widest) for name in names[line::count]).rstrip()
        for line in range(count)
    )
    return "Available help:\n" + "".join(f"  {line}\n" for line in lines)
