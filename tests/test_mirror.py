"""The tree of tests mirrors that of the code, and the rule about it is able to fail."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.mirror import OF_NO_ROOM, misplaced

ROOT = Path(__file__).parents[1]
CODE = ("qserver/sql/__init__.py", "qserver/sql/ast/nodes.py", "qserver/sql/parser.py")
TESTS = ("tests/sql/test_depth.py", "tests/sql/ast/test_nodes.py")


def files() -> list[str]:
    return [
        path.relative_to(ROOT).as_posix()
        for top in ("qserver", "tests")
        for path in (ROOT / top).rglob("*")
        if "__pycache__" not in path.parts and path.is_file()
    ]


def test_tests_are_where_one_looks_for_them() -> None:
    assert list(misplaced(files())) == []


def test_every_folder_of_no_room_is_there_and_is_told() -> None:
    page = (ROOT / "docs" / "contributing.md").read_text(encoding="utf-8")
    for folder in OF_NO_ROOM:
        assert list((ROOT / "tests" / folder).rglob("test_*.py")), folder
        assert f"| `tests/{folder}/` |" in page, folder


@pytest.mark.parametrize(
    "more",
    [
        "tests/sql/parser/test_words.py",  # of one module
        "tests/sql/test_execution.py",  # of several
        "tests/web/contract/test_nodes.py",
        "tests/simulations/test_nodes.py",
        "tests/test_readme.py",
        "tests/sql/ast/scripts.txt",
    ],
)
def test_what_is_in_its_place_is_let_pass(more: str) -> None:
    assert list(misplaced([*CODE, *TESTS, more])) == []


@pytest.mark.parametrize(
    ("code", "test", "complaint"),
    [
        ("qserver/web/hosts.py", "tests/sql/test_hosts.py", "has no tests"),
        ("qserver/sql/vectors/folds.py", "tests/sql/test_scans.py", "has no tests"),
        ("qserver/sql/scans.py", "tests/sql/ast/test_scans.py", "belong in tests/sql"),
        ("qserver/sql/scans.py", "tests/catalog/test_all.py", "is about no folder"),
    ],
)
def test_what_is_elsewhere_is_found(code: str, test: str, complaint: str) -> None:
    (found,) = misplaced([*CODE, *TESTS, code, test])
    assert complaint in found
