"""Tests stand where one looks for them: the tree of tests mirrors that of the code.

    qserver/storage/btree.py            tests/storage/test_btree.py
    several modules of qserver/query/   tests/query/test_….py
    a module that has golden scripts    tests/sql/optimizer/join_ordering/

What is about no room has a folder of its own, which `OF_NO_ROOM` lists.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from pathlib import PurePosixPath
from typing import Final

OF_NO_ROOM: Final[Mapping[str, str]] = {
    "differential": "random programs, here and on PostgreSQL",
    "django": "a project of Django, and its own tests of databases",
    "docs": "the site of the docs, and the session on its front page",
    "hostile": "attacks on a real server",
    "hot_path": "what requests take, counted",
    "java": "the driver for JDBC",
    "javascript": "our client, and tools in JavaScript that come with their own",
    "nodes": "nodes that share a log, as processes with faults",
    "notebooks": "`%sql` in notebooks",
    "powerloss": "power failures and disks that fail",
    "processes": "processes that share a folder, with faults",
    "simulations": "the simulator, its checkers and its runs",
    "speed": "the measurements of `make bench`",
    "torture": "a real server, killed again and again",
    "web/contract": "the contract of HTTP, section by section, on each kind of server",
    "web/guards": "what protects one caller from another, by every way in",
}
"""Folders of tests about no folder of the code, but about the whole or about what is outside."""

CODE: Final = ".py"
SCRIPTS: Final = (".txt", ".script")
"""Golden scripts, which a test elsewhere runs: it says what they show."""


def misplaced(files: Collection[str]) -> Iterator[str]:
    """What is not where it belongs, among the paths of `qserver/` and `tests/`."""
    paths = [PurePosixPath(each) for each in files]
    code = {
        path.relative_to("qserver")
        for path in paths
        if path.parts[0] == "qserver" and path.suffix == CODE
    }
    tests = {path.relative_to("tests") for path in paths if path.parts[0] == "tests"}
    modules = {path.with_suffix("") for path in code if path.stem != "__init__"}
    folders = {path.parent for path in modules}
    yield from _rooms_without_tests(folders, tests)
    for path in sorted(tests):
        if path.suffix == CODE and path.name.startswith("test_"):
            yield from _misplaced(path, modules, folders)


def _rooms_without_tests(
    folders: Collection[PurePosixPath], tests: Collection[PurePosixPath]
) -> Iterator[str]:
    tested = {path.parent for path in tests if path.name.startswith("test_")}
    tested |= {path.parent for path in tests if path.suffix in SCRIPTS}
    for folder in sorted(set(folders) - tested):
        yield f"qserver/{folder} has no tests in tests/{folder}"


def _misplaced(
    test: PurePosixPath, modules: Collection[PurePosixPath], folders: Collection[PurePosixPath]
) -> Iterator[str]:
    folder, name = test.parent, test.stem.removeprefix("test_")
    if not folder.parts or any(str(each) in OF_NO_ROOM for each in [folder, *folder.parents]):
        return
    if folder in modules:  # the tests of one module
        return
    if folder not in folders:
        yield f"tests/{test} is about no folder of qserver/, nor is its folder in OF_NO_ROOM"
        return
    places = {
        each.parent for each in modules if each.name == name and each.parts[0] == test.parts[0]
    }
    if places and folder not in places:
        found = ", ".join(f"tests/{each}" for each in sorted(places))
        yield f"tests/{test} is named like a module whose tests belong in {found}"
