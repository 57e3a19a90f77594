"""The matrix and the catalogue say what is there, and what is not."""

from __future__ import annotations

import pytest

from qserver import limits
from qserver.errors import QserverError
from qserver.functions import all_functions as registry
from qserver.functions.resolve import is_window_function
from qserver.probes import catalogue, matrix
from qserver.probes.absent import ABSENT, Absent
from qserver.probes.catalogue import STATEMENTS, WINDOW_FUNCTIONS
from qserver.probes.matrix import BY_NAME
from qserver.probes.steps import TransactionStep
from qserver.query.scratch import scratch_database
from qserver.values.types import CATALOG_KINDS, PSEUDO_KINDS, Kind
from tests.sql.databases import quiet_world


def test_every_supported_feature_has_the_path_of_a_probe_and_no_other_has() -> None:
    for capability in matrix():
        if capability.supported:
            assert capability.probe == f"/capabilities/{capability.name}"
            assert capability.name in BY_NAME
        else:
            assert capability.probe is None
            assert capability.name not in BY_NAME
        assert capability.description.endswith((".", "]."))


@pytest.mark.parametrize("absent", [each for each in ABSENT if each.refused], ids=lambda a: a.name)
async def test_what_is_absent_is_refused_rather_than_ignored(absent: Absent) -> None:
    assert absent.refused is not None
    async with scratch_database(quiet_world()) as database:
        await database.execute("CREATE TABLE t (id INTEGER PRIMARY KEY)")
        with pytest.raises(QserverError) as caught:
            await database.execute(absent.refused)
    assert caught.value.code == "0A000"


def test_the_catalogue_has_every_limit_with_its_value_and_its_sentence() -> None:
    found = {each.name: each.value for each in catalogue().limits}
    assert found == {name: value for name, value in vars(limits).items() if name.isupper()}
    assert all(each.description.endswith(".") for each in catalogue().limits)


@pytest.mark.parametrize(("statement", "probe"), list(STATEMENTS.items()))
def test_the_probe_of_a_statement_runs_that_statement(statement: str, probe: str) -> None:
    steps = BY_NAME[probe].steps
    assert isinstance(steps, tuple)
    texts = [
        step.sql
        for each in steps
        for step in (each.steps if isinstance(each, TransactionStep) else (each,))
        if step.code is None
    ]
    words = statement.split()
    assert any(_holds(text, words) for text in texts), texts


def _holds(text: str, words: list[str]) -> bool:
    """Begins with the first word, and the others follow somewhere behind it, in order."""
    at = 0
    for place, word in enumerate(words):
        at = text.find(word, at)
        if at < 0 or (place == 0 and at > 0):
            return False
        at += len(word)
    return True


def test_the_catalogue_has_every_type() -> None:
    kinds = {kind.value for kind in Kind if kind not in (*PSEUDO_KINDS, *CATALOG_KINDS)}
    assert {each.name for each in catalogue().types} == kinds


async def test_the_other_names_of_a_type_mean_that_type() -> None:
    async with scratch_database(quiet_world()) as database:
        for each in catalogue().types:
            for alias in each.aliases:
                result = await database.execute(f"SELECT NULL::{alias}")
                assert str(result.types[0]).partition("(")[0] == each.name


def test_the_catalogue_has_every_function_with_its_signatures() -> None:
    functions = catalogue().functions
    for kind, known in (
        ("scalar", registry.FUNCTIONS),
        ("aggregate", registry.AGGREGATES),
        ("table", registry.TABLE_FUNCTIONS),
    ):
        assert [each.name for each in functions if each.kind == kind] == sorted(known)
    signatures = {each.name: each.signatures for each in functions if each.kind == "scalar"}
    assert "round(numeric, integer) → numeric" in signatures["round"]
    assert all(signatures.values())
    assert all(is_window_function(name) for name in WINDOW_FUNCTIONS)
