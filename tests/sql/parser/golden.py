"""Golden scripts: statements, and below each what the parser makes of it.

    # Text after a hash is for the reader.
    > SELECT 1
    Query@0
      body: Select@0
        targets:
          Target@7
            expression: Literal@7 index=0 kind=integer
    > SELECT 1 +
    error 42601 at 11: syntax error at end of input

A statement is one or more lines that begin with `>`. To write the answers anew, run the tests with
QSERVER_GOLDEN=write and read the diff.
"""

from __future__ import annotations

from qserver.errors import QserverError
from qserver.sql.parser import parse
from tests.sql.parser.printing import printed


def rewritten(script: str) -> str:
    """The script with the answers of the parser."""
    lines: list[str] = []
    statement: list[str] = []
    for line in [*script.splitlines(), ""]:
        if line.startswith(">"):
            statement.append(line)
            lines.append(line)
            continue
        if statement:
            lines.extend(answer("\n".join(part[1:].removeprefix(" ") for part in statement)))
            statement = []
        if not line or line.startswith("#"):
            lines.append(line)
    return "\n".join(lines).rstrip("\n") + "\n"


def answer(sql: str) -> list[str]:
    try:
        parsed = parse(sql)
    except QserverError as error:
        hint = [] if error.hint is None else [f"  hint: {error.hint}"]
        return [f"error {error.code} at {error.position}: {error.message}", *hint]
    lines = printed(parsed.statement)
    if parsed.parameters:
        lines.append(f"parameters: {', '.join(map(str, parsed.parameters))}")
    return lines
