"""The page of limits, from `qserver/limits.py`: each name, its value, the sentence below it.

The source is read and not only imported, because a module does not keep the sentences that follow
its constants, nor the comments that divide it into sections.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from itertools import pairwise
from pathlib import Path
from typing import NamedTuple

from qserver import limits

SECTION = re.compile(r"^# --- (.+?) -+$")
OPENING = """\
# Limits

`make docs` writes this page from `qserver/limits.py`, which also asserts how limits relate to each
other. [operations.md](operations.md#settings) lists those that an operator may change,
[http.md](http.md#limits) those that a client meets first. Bounds that only one algorithm knows stay
in its module, those of PostgreSQL's protocol in `qserver/pgwire/limits.py`, those of continuous
backups in `qserver/archive/limits.py`.
"""


class Limit(NamedTuple):
    """One statement of the module: it may bind two names, such as a minimum and a maximum."""

    line: int
    names: tuple[str, ...]
    sentence: str


def page() -> str:
    source = Path(limits.__file__).read_text(encoding="utf-8")
    lines = [OPENING]
    heading = ""
    for limit in limits_in(source):
        section = section_at(source, limit.line)
        if section != heading:
            heading = section
            lines += [
                f"\n## {heading[0].upper()}{heading[1:]}\n",
                "| limit | value | meaning |",
                "|---|---|---|",
            ]
        names = ", ".join(f"`{name}`" for name in limit.names)
        values = ", ".join(f"{getattr(limits, name):,}" for name in limit.names)
        lines.append(f"| {names} | {values} | {limit.sentence} |")
    return "\n".join(lines).replace("\n\n\n", "\n\n") + "\n"


def limits_in(source: str) -> Iterator[Limit]:
    for statement, following in pairwise(ast.parse(source).body):
        if isinstance(statement, ast.Assign) and isinstance(following, ast.Expr):
            sentence = ast.literal_eval(following.value)
            names = [
                node.id for node in ast.walk(statement.targets[0]) if isinstance(node, ast.Name)
            ]
            yield Limit(statement.lineno, tuple(names), " ".join(sentence.split()))


def section_at(source: str, line: int) -> str:
    """The nearest dividing comment above a line."""
    above = reversed(source.splitlines()[:line])
    return next(found[1] for text in above if (found := SECTION.match(text)))
