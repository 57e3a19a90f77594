"""Golden scripts: statements, and what the binder makes of each. They are in its folders.

    # a comment
    create table t (a integer);          definitions, one a line

    > select a from t                    a statement
    select #2: a integer?                its plan, or
    ! 42703 column "b" does not exist @8  its error: code, text, position

`python -m tests.sql.binder.golden` writes the answers anew; read the difference before you keep it.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from pathlib import Path

from qserver.errors import QserverError
from tests.sql.binder.catalogs import TestCatalog
from tests.sql.binder.printing import printed
from tests.sql.binder.statements import bind_text, define_text

FOLDER = Path(__file__).parent


@dataclass(frozen=True, slots=True)
class Case:
    """A statement of a script, with the answer that the script has for it."""

    sql: str
    expected: str


@dataclass(frozen=True, slots=True)
class Script:
    """A script: its first lines (comments and definitions), and its cases."""

    path: Path
    head: tuple[str, ...]
    cases: tuple[Case, ...]

    def catalog(self) -> TestCatalog:
        return _catalog(self.head)

    def rewritten(self) -> str:
        catalog = self.catalog()
        blocks = ["\n".join(self.head).rstrip()]
        blocks += [f"> {case.sql}\n{answer(catalog, case.sql)}" for case in self.cases]
        return "\n\n".join(blocks) + "\n"


@cache
def _catalog(head: tuple[str, ...]) -> TestCatalog:
    """Statements do not change it, so all cases of a script share it."""
    catalog = TestCatalog()
    for line in head:
        if line and not line.startswith("#"):
            define_text(catalog, line.rstrip(";"))
    return catalog


def read_script(path: Path) -> Script:
    head: list[str] = []
    cases: list[Case] = []
    for line in path.read_text().splitlines():
        if line.startswith("> "):
            cases.append(Case(line[2:], ""))
        elif not cases:
            head.append(line)
        elif line:
            last = cases[-1]
            expected = f"{last.expected}\n{line}" if last.expected else line
            cases[-1] = Case(last.sql, expected)
    return Script(path, tuple(head), tuple(cases))


def scripts() -> Iterator[Script]:
    for path in sorted(FOLDER.glob("*/*.txt")):
        yield read_script(path)


def answer(catalog: TestCatalog, sql: str) -> str:
    """What the binder makes of a statement: its plan and pinned literals, or its error."""
    try:
        bound = bind_text(catalog, sql)
    except QserverError as error:
        place = "" if error.position is None else f" @{error.position}"
        lines = [f"! {error.code} {error.message}{place}"]
        lines += [f"  detail: {error.detail}"] if error.detail else []
        lines += [f"  hint: {error.hint}"] if error.hint else []
        return "\n".join(lines)
    text = printed(bound.statement)
    if bound.in_fingerprint:
        text += f"\npinned {sorted(bound.in_fingerprint)}"
    return text


if __name__ == "__main__":
    for script in scripts():
        script.path.write_text(script.rewritten())
