"""By day a sample is run, which the seed decides; at night everything is."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import pytest

from tests import sampling

ROOT = Path(__file__).parents[1]
HUNT = """
import pytest
from tests.sampling import sampled

@pytest.mark.parametrize("bug", sampled(range(100), 10, always=[7]))
def test_bug(bug):
    pass

@pytest.mark.nightly
def test_hours():
    pass

@pytest.mark.long
@pytest.mark.parametrize("number", range(60))
def test_seconds(number):
    pass

@pytest.mark.half
@pytest.mark.parametrize("number", range(60))
def test_tenths(number):
    pass
"""


def run(folder: Path, *options: str, **environment: str) -> list[str]:
    """The tests of a small suite that are run, and the last line."""
    (folder / "test_hunt.py").write_text(HUNT)
    command = [sys.executable, "-m", "pytest", "-v", "--rootdir", ".", "-p", "tests.conftest"]
    done = subprocess.run(
        [*command, "--strict-markers", "-o", "markers=nightly\nlong\nhalf", *options],
        cwd=folder,
        env={"PYTHONPATH": str(ROOT), **environment},
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    lines = done.stdout.splitlines()
    passed = [line.replace(" PASSED", "") for line in lines if " PASSED" in line]
    return [re.sub(r" *\[ *[0-9]+%\]( |$)", "", line) for line in passed] + [lines[-2]]


@pytest.mark.long
def test_the_seed_decides_what_is_run_by_day(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    first = run(tmp_path, QSERVER_TEST_SEED="1")
    bugs = [name for name in first if "test_bug" in name]
    assert len(bugs) == 10
    assert "test_hunt.py::test_bug[7]" in first
    assert "test_hunt.py::test_hours" not in first
    assert first[-1] == "a sample was run; to repeat it: QSERVER_TEST_SEED=1"
    again = []
    for seed in (1, 2):
        monkeypatch.setattr(sampling, "SEED", seed)
        drawn = sampling.drawn(range(100), 10, always=[7])
        again.append([f"test_hunt.py::test_bug[{bug}]" for bug in drawn])
    assert again[0] == bugs != again[1]


@pytest.mark.long
def test_a_share_of_what_takes_long_is_run_by_day_unless_it_is_named(tmp_path: Path) -> None:
    runs = [
        run(tmp_path, *options, QSERVER_TEST_SEED=seed)
        for seed, options in (
            ("1", ()),
            ("2", ()),
            ("1", ("--numprocesses", "2", "--dist", "loadfile")),
            ("1", ("test_hunt.py",)),
        )
    ]
    for word, most in (("seconds", 15), ("tenths", 45)):
        first, second, apart, named = ({name for name in each if word in name} for each in runs)
        assert most / 15 <= len(first) <= most and most / 15 <= len(second) <= most
        assert first != second
        assert len(apart) == len(first)
        assert len(named) == 60


@pytest.mark.long
def test_everything_is_run_at_night(tmp_path: Path) -> None:
    assert len(run(tmp_path, QSERVER_NIGHTLY="1")) == 221 + 1


def test_a_sample_has_what_is_always_wanted_and_no_more_than_there_is() -> None:
    assert sampling.drawn("abc", 9) == ["a", "b", "c"]
    assert sampling.drawn("abc", 1, always="b") == ["b"]
    assert sampling.drawn("abc", 0, always="ac") == ["a", "c"]


def test_a_seed_follows_from_the_files_of_the_last_commit(tmp_path: Path) -> None:
    def git(*words: str) -> None:
        author = ["-c", "user.name=A", "-c", "user.email=a@b", "-c", "commit.gpgsign=false"]
        subprocess.run(["git", *author, *words], cwd=tmp_path, check=True, capture_output=True)

    def seed_after(content: str, message: str) -> int | None:
        (tmp_path / "file").write_text(content)
        git("add", "file")
        git("commit", "--allow-empty", "-m", message)
        return sampling.seed_of_the_commit(tmp_path)

    assert sampling.seed_of_the_commit(tmp_path) is None
    git("init")
    assert sampling.seed_of_the_commit(tmp_path) is None
    first, again, second = (seed_after(*each) for each in (("1", "a"), ("1", "b"), ("2", "b")))
    assert first == again != second
    (tmp_path / "file").write_text("not committed")
    assert sampling.seed_of_the_commit(tmp_path) == second


def test_the_parts_of_the_night_are_targets_and_are_told() -> None:
    makefile = (ROOT / "Makefile").read_text()
    parts = re.findall(r"^define NIGHTLY\n(.*?)^endef", makefile, re.MULTILINE | re.DOTALL)[0]
    page = (ROOT / "docs" / "contributing.md").read_text()
    for part in parts.splitlines():
        target = part.split()[0]
        assert f"\n{target}: install ##" in makefile, part
        assert f"make {target}" in page, part
