"""Programs that once showed a difference, shrunk, in `kept.jsonl`: the tests run them again.

A line holds the statements themselves beside the seed, since a seed means another program as soon
as the generator changes. Programs of seed 0 were written by hand.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Final

from tests.differential.comparison import Step

if TYPE_CHECKING:
    from tests.differential.campaign import Failure

FILE: Final = Path(__file__).with_name("kept.jsonl")


def keep(failure: Failure, file: Path = FILE) -> None:
    """Add a program, unless the same is there."""
    line = {"seed": failure.seed, "statements": [step.sql for step in failure.steps]}
    if line["statements"] not in [[step.sql for step in steps] for _, steps in kept(file)]:
        with file.open("a") as opened:
            opened.write(json.dumps(line, ensure_ascii=False) + "\n")


def kept(file: Path = FILE) -> list[tuple[int, list[Step]]]:
    if not file.exists():
        return []
    lines = [json.loads(line) for line in file.read_text().splitlines() if line]
    return [(line["seed"], [Step(sql) for sql in line["statements"]]) for line in lines]
