"""The real files: bytes and names that were not synced are dropped at every operation.

This is the short form; `make powerloss` goes on for as long as it is told.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest

from tests.powerloss.__main__ import LIVES, memory
from tests.powerloss.campaign import Campaign
from tests.powerloss.family import audit_family
from tests.powerloss.journal import COMPILER, build_library
from tests.sampling import NIGHTLY, sampled

EVERY = 1 if NIGHTLY else 9
"""Of so many operations the power fails before one."""

BUGS = ("normal", "trim", "forget", "names", "content", "early")

pytestmark = pytest.mark.skipif(COMPILER is None, reason="there is no C compiler")


@pytest.fixture(scope="module")
def library(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return build_library(tmp_path_factory.mktemp("library"))


@pytest.fixture
def place() -> Iterator[Path]:
    with TemporaryDirectory(prefix="qserver-powerloss-", dir=memory()) as folder:
        yield Path(folder) / "place"


@pytest.mark.long
def test_a_power_failure_at_any_operation_loses_nothing_that_was_promised(
    library: Path, place: Path
) -> None:
    campaign = Campaign(library, place, every=EVERY)
    report = campaign.run(LIVES)
    assert report.problems == []
    assert report.operations > 500 and report.promises > 30
    left, promises = campaign.left[len(campaign.left) // 2]
    again = Campaign(library, place, lucks=("nothing", 1), every=EVERY).run_again(left, promises)
    assert again.problems == []


@pytest.mark.long
def test_branches_are_what_they_were_promised_to_be_whenever_the_power_fails(
    library: Path, place: Path
) -> None:
    campaign = Campaign(library, place, lucks=("nothing",), audit=audit_family, every=120)
    report = campaign.run(["family"])
    assert report.problems == []
    assert report.failures > 5 and report.promises > 40


@pytest.mark.long
def test_a_pin_that_is_not_synced_is_found(library: Path, place: Path) -> None:
    campaign = Campaign(
        library,
        place,
        bug="pins",
        lucks=("nothing",),
        problems_most=1,
        audit=audit_family,
        every=70,
    )
    assert campaign.run(["family"]).problems != []


@pytest.mark.long
def test_a_backup_is_whole_or_not_there_and_what_was_restored_stays(
    library: Path, place: Path
) -> None:
    report = Campaign(library, place, lucks=("nothing", 1), every=EVERY).run(["backup", "copy"])
    assert report.problems == []


@pytest.mark.long
def test_a_sync_that_fails_once_is_not_believed_later(library: Path, place: Path) -> None:
    probe = Campaign(library, place, lucks=())
    operations = probe.run(["first"]).operations
    for share in (0.5, 0.9):
        report = Campaign(library, place, lucks=("nothing",)).run(
            ["first"], fail_at=round(operations * share)
        )
        assert report.problems == []


@pytest.mark.parametrize("kill_at", sampled([60, 150, 290], 1))
def test_a_process_that_is_killed_at_an_operation_leaves_what_it_promised(
    library: Path, place: Path, kill_at: int
) -> None:
    report = Campaign(library, place).run_killed(LIVES, kill_at, half=True)
    assert report.problems == []


@pytest.mark.parametrize("bug", sampled(BUGS, 2))
def test_a_planted_bug_is_found(library: Path, place: Path, bug: str) -> None:
    campaign = Campaign(library, place, bug=bug, lucks=("nothing", 1), problems_most=1)
    assert campaign.run(["first"]).problems != []


@pytest.mark.long
def test_a_start_that_believes_what_was_not_synced_is_found(library: Path, place: Path) -> None:
    campaign = Campaign(library, place, bug="believe", lucks=("nothing",), problems_most=1)
    assert campaign.run(["first", "second"]).problems != []
