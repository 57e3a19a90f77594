"""What tools send gets from qserver what it gets from PostgreSQL.

The statements of each tool are in a file, with what is otherwise on purpose.
`python -m tests.differential.tools` runs all, or those of the tools that it is given.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tests.differential.engines import Outcome
from tests.differential.tools.answers import (
    Difference,
    differences,
    prepare_template,
    session_of_postgres,
    session_of_qserver,
)
from tests.differential.tools.sent import SENT, Sent, sent_by
from tests.pgwire.serving import in_thread, serving
from tests.sampling import sampled

BY_DAY = 5
"""Tools of which all statements are tried by day."""


@pytest.fixture(scope="module")
def template(server: Any) -> Any:
    prepare_template(server)
    return server


def _found(server: Any, url: str, sent: list[Sent]) -> list[Difference]:
    with session_of_postgres(server) as postgres, session_of_qserver(url) as qserver:
        return list(differences(postgres, qserver, sent))


@pytest.mark.long
@pytest.mark.parametrize("path", sampled(SENT, BY_DAY), ids=lambda path: path.stem)
async def test_what_a_tool_sends_is_answered_as_by_postgresql(template: Any, path: Path) -> None:
    async with serving() as served:
        found = await in_thread(_found, template, served.url, sent_by(path))
    assert not found, "\n\n".join(map(str, found))


def test_each_file_has_statements_that_are_compared_whole() -> None:
    assert len(SENT) >= 15
    for path in SENT:
        sent = sent_by(path)
        whole = [each for each in sent if not each.columns_only and not each.differs]
        assert len(whole) >= 9 and len(whole) >= 0.6 * len(sent), path.name


class Answering:
    """An engine that answers everything with one outcome."""

    def __init__(self, outcome: Outcome) -> None:
        self.run: Callable[..., Outcome] = lambda *asked: outcome


@pytest.mark.parametrize(
    ("sent", "other", "is_found"),
    [
        (Sent("", 1), Outcome(columns=("a", "b"), types=("oid", "text"), rows=(("9", "y"),)), True),
        (Sent("", 1), Outcome(columns=("a", "b"), types=("oid", "text"), rows=(("1", "x"),)), True),
        (
            Sent("", 1),
            Outcome(columns=("a", "b"), types=("oid", "text"), rows=(("17000", "x"),)),
            False,
        ),
        (Sent("", 1), Outcome(columns=("a", "c"), types=("oid", "text"), rows=(("9", "x"),)), True),
        (Sent("", 1), Outcome(columns=("a", "b"), types=("oid", "name"), rows=(("9", "x"),)), True),
        (Sent("", 1), Outcome("42P01"), True),
        (
            Sent("", 1, hidden=frozenset({"b"})),
            Outcome(columns=("a", "b"), types=("oid", "text"), rows=(("16390", "y"),)),
            False,
        ),
        (
            Sent("", 1, columns_only="sizes"),
            Outcome(columns=("a", "b"), types=("oid", "text")),
            False,
        ),
        (Sent("", 1, differs="no such table"), Outcome("42P01"), False),
        (
            Sent("", 1, differs="no such table"),
            Outcome(columns=("a", "b"), types=("oid", "text"), rows=(("16999", "x"),)),
            True,
        ),
    ],
)
def test_a_difference_is_found(sent: Sent, other: Outcome, is_found: bool) -> None:
    wanted = Outcome(columns=("a", "b"), types=("oid", "text"), rows=(("16384", "x"),))
    first: Any = Answering(wanted)
    second: Any = Answering(other)
    assert bool(list(differences(first, second, [sent]))) is is_found
