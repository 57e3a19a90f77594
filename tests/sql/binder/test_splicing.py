"""Whatever a statement says, it becomes a sound plan or an error of ours."""

from __future__ import annotations

from random import Random

import pytest

from qserver.errors import QserverError
from qserver.sql.binder import Literals, bind
from tests.sql.binder.checking import check_statement
from tests.sql.binder.golden import Script, scripts
from tests.sql.binder.splicing import Splicer

ROUNDS = 100


@pytest.mark.parametrize("script", list(scripts()), ids=lambda script: script.path.stem)
def test_spliced_statements_are_bound_soundly_or_refused(script: Script) -> None:
    splicer, random, outcomes = Splicer(script), Random(script.path.stem), set()
    for _ in range(ROUNDS):
        statement = splicer.spliced(random)
        try:
            bound = bind(statement, Literals(splicer.literals), script.catalog())
        except QserverError as error:
            outcomes.add(error.code)
        else:
            outcomes.add("ok")
            check_statement(bound.statement)
    assert "ok" in outcomes and len(outcomes) > 3, "both ends are reached, in several ways"
