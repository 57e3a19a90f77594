"""\\sf and \\sv: the statement that makes a function or a view again."""

from __future__ import annotations

from typing import Final

from qserver.cli.shell.shell import Shell
from qserver.errors import InvalidRequest, WrongObjectType
from qserver.values.identifiers import quote_identifier

_CHECK: Final = "check_option="


def function_source(shell: Shell, name: str) -> str:
    kind = "regprocedure" if "(" in name else "regproc"
    found = shell.query(
        f"SELECT pg_catalog.pg_get_functiondef(?::pg_catalog.{kind}::pg_catalog.oid)", [name]
    )
    return str(found.rows[0][0]).rstrip("\n")


def view_source(shell: Shell, name: str) -> str:
    found = shell.query(
        "SELECT n.nspname, c.relname, c.relkind, pg_catalog.pg_get_viewdef(c.oid, true),"
        " c.reloptions FROM pg_catalog.pg_class c"
        " JOIN pg_catalog.pg_namespace n ON n.oid = c.relnamespace"
        " WHERE c.oid = ?::pg_catalog.regclass::pg_catalog.oid",
        [name],
    )
    schema, relation, kind, query, options = found.rows[0]
    if kind not in ("v", "m"):
        raise WrongObjectType(f'"{schema}.{relation}" is not a view')
    named = f"{quote_identifier(schema)}.{quote_identifier(relation)}"
    head = "CREATE OR REPLACE VIEW" if kind == "v" else "CREATE MATERIALIZED VIEW"
    plain = [each for each in options or () if not each.startswith(_CHECK)]
    checks = [each.removeprefix(_CHECK) for each in options or () if each.startswith(_CHECK)]
    given = f"\n WITH ({', '.join(plain)})" if plain else ""
    text = f"{head} {named}{given} AS\n{query.rstrip().removesuffix(';')}"
    return text + (f"\n WITH {checks[0].upper()} CHECK OPTION" if checks else "")


def numbered(text: str, first_word: str | None) -> str:
    """With the numbers of lines; a function's begin with its body."""
    lines, number, shown = text.split("\n"), 0, []
    for line in lines:
        starts = first_word is None or number > 0 or line.startswith(first_word)
        number += 1 if starts else 0
        shown.append(f"{number if starts else '':<7} {line}")
    return "\n".join(shown)


def name_of(argument: str, what: str) -> str:
    name = argument.strip().rstrip(";").strip()
    if not name:
        raise InvalidRequest(f"{what} name is required")
    return name
