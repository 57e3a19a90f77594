"""The tree is held to the rules of the house, and each rule is shown to be able to fail.

The first test reads every module of `qserver/` and `simulations/`. The others give a rule a few
lines that break it, and a few that look alike but do not.
"""

from __future__ import annotations

from functools import cache
from pathlib import Path

import pytest

from tests import house_rules
from tests.house_rules import Module, Rule

ROOT = Path(__file__).parent.parent
TYPES_ONLY = "from typing import TYPE_CHECKING\nif TYPE_CHECKING:\n"


@cache
def modules_of_the_tree() -> list[Module]:
    paths = [path for top in ("qserver", "simulations") for path in (ROOT / top).rglob("*.py")]
    return [
        Module(path.relative_to(ROOT).as_posix(), path.read_text(encoding="utf-8"))
        for path in sorted(paths)
    ]


def complaints(rule: Rule, path: str, source: str) -> list[str]:
    return list(rule(Module(path, source)))


@pytest.mark.parametrize("rule", house_rules.RULES, ids=lambda rule: rule.__name__)
def test_the_tree_keeps_the_rule(rule: Rule) -> None:
    modules = modules_of_the_tree()
    assert {"qserver", "qserver.cli", "simulations"} <= {module.name for module in modules}
    assert [complaint for module in modules for complaint in rule(module)] == []


@pytest.mark.parametrize(
    ("path", "source"),
    [
        ("qserver/storage/snapshot.py", "from qserver.sql import plan"),
        ("qserver/storage/snapshot.py", "from qserver import sql"),
        ("qserver/storage/snapshot.py", "import qserver.engine.shard as shard"),
        ("qserver/storage/snapshot.py", "from ..durability import log"),
        ("qserver/storage/snapshot.py", "from .. import durability"),
        ("qserver/storage/__init__.py", "from ..engine import shard"),
        ("qserver/storage/pages/leaf.py", "from ...engine import shard"),
        ("qserver/storage/snapshot.py", "def late():\n    from qserver import control"),
        ("qserver/values/row.py", f"{TYPES_ONLY}    from qserver.storage import snapshot"),
        ("qserver/errors.py", "from qserver import limits"),
        ("qserver/engine/shard.py", "from qserver.config import Settings"),
        ("qserver/engine/shard.py", "from qserver.sql import plan"),
        ("qserver/engine/shard.py", "from qserver.query import cursor"),
        ("qserver/engine/shard.py", "from qserver import __version__"),
        ("qserver/client/__init__.py", "from qserver.engine import gateway"),
        ("qserver/storage/snapshot.py", "from qserver.benchmarks import clients"),
        ("qserver/storage/snapshot.py", "from qserver import *"),
        ("qserver/http1/head.py", "from qserver.values import types"),
        ("qserver/probes/run.py", "from qserver.web import app"),
        ("qserver/workloads/measuring.py", "from qserver.http1 import head"),
        ("qserver/attic.py", ""),
    ],
)
def test_an_import_against_the_table_is_found(path: str, source: str) -> None:
    assert len(complaints(house_rules.imports_follow_the_table, path, source)) == 1


@pytest.mark.parametrize(
    ("path", "source"),
    [
        ("qserver/storage/snapshot.py", "from qserver.values.keys import Key\nfrom . import btree"),
        ("qserver/storage/__init__.py", "from .btree import Tree\nfrom ..values import keys"),
        ("qserver/engine/shard.py", "from qserver import errors, limits, storage\nimport trio"),
        ("qserver/query/cursor.py", "from qserver import engine, sql"),
        ("qserver/benchmarks/clients.py", "from qserver.engine import gateway"),
        ("qserver/cli.py", "from qserver import __version__, web"),
        ("simulations/world.py", "from qserver.engine import gateway"),
    ],
)
def test_an_import_that_the_table_allows_is_left_alone(path: str, source: str) -> None:
    assert complaints(house_rules.imports_follow_the_table, path, source) == []


@pytest.mark.parametrize(
    ("source", "is_by_the_door"),
    [
        ("from qserver.sql import parse, ast", True),
        ("from qserver import sql", True),
        ("from qserver.sql.parser import parse", False),
        ("from qserver.sql import parser", False),
        ("import qserver.sql.parser", False),
        (f"{TYPES_ONLY}    from qserver.sql.plan import Plan", False),
    ],
)
def test_sql_is_entered_by_its_door_alone(source: str, is_by_the_door: bool) -> None:
    rule = house_rules.sql_is_entered_by_its_door
    assert (complaints(rule, "qserver/query/cursor.py", source) == []) is is_by_the_door
    assert complaints(rule, "qserver/sql/binder/names/scope.py", source) == []
    assert complaints(rule, "simulations/world.py", source) == []


def test_files_import_each_other_only_where_the_list_says_so() -> None:
    assert house_rules.circles(modules_of_the_tree()) == house_rules.CIRCLES


def test_a_circle_is_found_also_where_it_is_for_types() -> None:
    sources = {
        "qserver/a.py": "from qserver.b import B",
        "qserver/b.py": "import qserver.c",
        "qserver/c.py": f"{TYPES_ONLY}    from qserver import a",
        "qserver/d.py": "from qserver.a import A",
    }
    modules = [Module(path, source) for path, source in sources.items()]
    assert house_rules.circles(modules) == {frozenset({"qserver.a", "qserver.b", "qserver.c"})}


@pytest.mark.parametrize("source", ["import simulations.world", "from tests import house_rules"])
def test_a_product_that_imports_its_tests_is_found(source: str) -> None:
    rule = house_rules.product_does_not_know_its_tests
    for path in ("qserver/cli.py", "qserver/benchmarks/clients.py"):
        assert len(complaints(rule, path, source)) == 1
    assert complaints(rule, "simulations/__main__.py", source) == []


@pytest.mark.parametrize(
    "source",
    [
        "import time",
        "import os.path",
        "from secrets import token_hex",
        "from uuid import uuid4",
        "import threading as threads",
        "import asyncio",
        "import random",
        "from random import Random",
        f"{TYPES_ONLY}    from random import choice",
        f"{TYPES_ONLY}    pass\nelse:\n    import random",
        "from trio import to_thread",
        "import trio\nasync def f():\n    await trio.to_thread.run_sync(print)",
        "import datetime\nnow = datetime.datetime.now()",
        "from datetime import datetime as moment\nclock = moment.utcnow",
        "import datetime as d\ntoday = d.date.today()",
        "file = open('rows')",
        "import importlib\nclock = importlib.import_module('ti' + 'me')",
    ],
)
def test_a_hand_stretched_out_to_the_world_is_found(source: str) -> None:
    rule = house_rules.world_comes_in_as_an_argument
    for path in (
        "qserver/storage/snapshot.py",
        "qserver/engine/shard.py",
        "qserver/control/keys.py",
    ):
        assert len(complaints(rule, path, source)) == 1
    for path in ("qserver/benchmarks/clients.py", "qserver/web/server.py", "qserver/cli.py"):
        assert complaints(rule, path, source) == []


@pytest.mark.parametrize(
    "source",
    [
        f"{TYPES_ONLY}    from random import Random",
        "import typing\nif typing.TYPE_CHECKING:\n    from random import Random",
        "from datetime import date, datetime, time\nday = datetime(2024, 2, 29)",
        "def run(context):\n    return context.now()",
        "from qserver.storage import time",
        "from uuid import UUID\nnobody = UUID(int=0)",
    ],
)
def test_a_world_that_comes_in_as_an_argument_is_left_alone(source: str) -> None:
    rule = house_rules.world_comes_in_as_an_argument
    assert complaints(rule, "qserver/engine/gateway.py", source) == []


def test_an_exception_covers_its_own_file_and_its_own_names_only() -> None:
    rule = house_rules.world_comes_in_as_an_argument
    source = "import os, sqlite3\nfrom pathlib import Path"
    assert complaints(rule, "qserver/durability/data_file.py", source) == []
    assert len(complaints(rule, "qserver/durability/log.py", source)) == 3
    assert len(complaints(rule, "qserver/durability/sqlite_file.py", "import time")) == 1


@pytest.mark.parametrize(
    "source",
    [
        "import trio",
        "from trio.testing import MockClock",
        f"{TYPES_ONLY}    import trio",
        "async def wait(): ...",
        "class Tree:\n    async def get(self): ...",
        "pages = (page async for page in source)",
    ],
)
def test_waiting_in_a_pure_room_is_found(source: str) -> None:
    rule = house_rules.pure_rooms_do_not_wait
    for room in ("values", "sql", "storage"):
        assert len(complaints(rule, f"qserver/{room}/thing.py", source)) == 1
    for path in ("qserver/engine/shard.py", "qserver/benchmarks/clients.py"):
        assert complaints(rule, path, source) == []


@pytest.mark.parametrize(
    ("statement", "found"),
    [
        ("total += await f()", 1),
        ("self.total -= 2 * (await f())", 1),
        ("rows |= {row async for row in f()}", 1),
        ("total += f()", 0),
        ("total = await f()", 0),
    ],
)
def test_an_await_inside_an_augmented_assignment_is_found(statement: str, found: int) -> None:
    rule = house_rules.no_await_inside_an_augmented_assignment
    source = f"async def count(self, total, rows, f):\n    {statement}"
    for path in ("qserver/web/server.py", "simulations/world.py"):
        assert len(complaints(rule, path, source)) == found


def test_no_generator_is_made_and_not_run() -> None:
    assert list(house_rules.unrun_generators(modules_of_the_tree())) == []
    steps = "def load(self):\n    yield\ndef both(self):\n    load()\n    yield from self.load()"
    left_out = "def commit(transaction):\n    transaction.load()"
    broken = [Module("qserver/engine/a.py", steps), Module("qserver/engine/b.py", left_out)]
    assert list(house_rules.unrun_generators(broken)) == [
        "qserver/engine/a.py:4: load is made and not run",
        "qserver/engine/b.py:2: load is made and not run",
    ]
    plain = Module(
        "qserver/engine/c.py", "def load():\n    def inner():\n        yield\n    return inner"
    )
    assert list(house_rules.unrun_generators([*broken, plain])) == []


@pytest.mark.parametrize(
    ("source", "found"),
    [
        ("cache = {}", 1),
        ("cache: dict[str, int] = dict()", 1),
        ("first = second = []", 2),
        ("from collections import deque as queue\nwaiting = queue()", 1),
        ("import collections\ncounts = collections.defaultdict(int)", 1),
        ("import itertools\nnumbers = itertools.count()", 1),
        ("squares = [n * n for n in range(9)]", 1),
        ("try:\n    pass\nexcept ValueError:\n    seen = set()", 1),
        ("last = 0\ndef next_number():\n    global last\n    last += 1", 1),
        ("from itertools import count\nNUMBERS = count(1)", 1),
        ("KEYWORDS = {'SELECT': 1}\n_PAIRS = [(1, 2)]\n__all__ = ['KEYWORDS']", 0),
        ("names = ('a', 'b')\nkinds = frozenset({1, 2})", 0),
        ("def fresh():\n    rows = []\n    return rows", 0),
        ("later: dict[str, int]", 0),
    ],
)
def test_mutable_state_of_a_module_is_found(source: str, found: int) -> None:
    rule = house_rules.no_mutable_state_in_modules
    for path in ("qserver/values/types.py", "qserver/engine/shard.py"):
        assert len(complaints(rule, path, source)) == found
    assert complaints(rule, "qserver/benchmarks/clients.py", source) == []


@pytest.mark.parametrize(
    ("source", "found"),
    [
        ("KEPT = {}\ndef keep(name, value):\n    KEPT[name] = value", 1),
        ("def keep(name):\n    _KEPT.append(name)\n_KEPT: Final[list[str]] = []", 1),
        ("KEPT = set()\nclass Row:\n    def keep(self):\n        KEPT.add(self)", 1),
        ("KEPT = {}\ndef forget(name):\n    del KEPT[name]\n    KEPT.clear()", 2),
        ("COUNTS = {}\ndef count(name):\n    COUNTS[name][0] += 1", 1),
        ("KEPT = {}\ndef keeper():\n    return lambda name: KEPT.setdefault(name, 1)", 1),
        ("from qserver.values.there import THERE\ndef forget():\n    THERE.clear()", 1),
        ("from qserver.values import there\ndef forget():\n    there.THERE.clear()", 1),
        ("PAIRS = {}\nPAIRS['a'] = 'b'\nPAIRS.update(c='d')\ndef f():\n    return PAIRS['a']", 0),
        ("KEPT = {}\ndef fresh():\n    kept = {**KEPT}\n    kept['a'] = 1\n    return kept", 0),
        ("from functools import lru_cache\n@lru_cache(maxsize=9)\ndef square(n): return n * n", 0),
        ("from qserver.values.there import EXACT\ndef add(n):\n    return EXACT.add(n, 1)", 0),
    ],
)
def test_a_table_of_a_module_that_is_written_to_is_found(source: str, found: int) -> None:
    there = Module("qserver/values/there.py", "THERE = {}\nEXACT = Context()")
    for path, counted in (("qserver/sql/here.py", found), ("qserver/cli/here.py", 0)):
        complained = house_rules.tables_of_modules_that_change([there, Module(path, source)])
        assert len(list(complained)) == counted


def test_no_table_of_a_module_is_written_to() -> None:
    assert list(house_rules.tables_of_modules_that_change(modules_of_the_tree())) == []


def test_an_object_of_a_module_that_changes_is_found() -> None:
    assert list(house_rules.objects_of_modules_that_change(modules_of_the_tree())) == []
    cache = "class Cache:\n    def __init__(self):\n        self.size = 0\n"
    grows = f"{cache}    def add(self):\n        self.size += 1\n"
    used = "from qserver.storage.a import Cache\nCACHE: Final = Cache()"
    plain, there = Module("qserver/storage/a.py", cache), Module("qserver/engine/b.py", used)
    assert list(house_rules.objects_of_modules_that_change([plain, there])) == []
    here = Module("qserver/storage/a.py", f"{grows}HERE = Cache()")
    assert list(house_rules.objects_of_modules_that_change([here, there])) == [
        "qserver/storage/a.py:6: HERE is mutable state of a module",
        "qserver/engine/b.py:2: CACHE is mutable state of a module",
    ]


def test_a_file_that_is_too_long_is_found() -> None:
    rule = house_rules.files_stay_small
    assert complaints(rule, "simulations/world.py", "x = 1\n" * house_rules.LINES_MAX) == []
    longer = "x = 1\n" * (house_rules.LINES_MAX + 1)
    assert len(complaints(rule, "simulations/world.py", longer)) == 1


def test_a_function_that_is_too_long_is_found() -> None:
    rule = house_rules.functions_stay_short
    for kind in ("def", "async def"):
        longest = f"x = 1\n{kind} f():\n" + "    x = 1\n" * (house_rules.FUNCTION_LINES_MAX - 1)
        assert complaints(rule, "qserver/cli.py", longest) == []
        found = complaints(rule, "qserver/cli.py", f"{longest}    x = 2\n")
        assert found == ["qserver/cli.py:2: f has 61 lines; the most is 60"]
        assert complaints(rule, "simulations/world.py", f"{longest}    x = 2\n") == []


def test_few_functions_are_complex() -> None:
    found = list(house_rules.complex_functions(modules_of_the_tree()))
    assert len(found) <= house_rules.COMPLEX_FUNCTIONS_MAX, "\n".join(found)


@pytest.mark.parametrize(
    ("branch", "ways"),
    [
        ("if x: pass", 1),
        ("x = 1 if y else 2", 1),
        ("for x in y: pass", 1),
        ("while x: pass", 1),
        ("x = a and b and c", 2),
        ("x = [a for a in b if c if d]", 3),
        ("match x:\n        case 1: pass\n        case _: pass", 2),
        ("try: pass\n    except OSError: pass\n    except ValueError: pass", 2),
        ("def g():\n        if x: pass", 0),
        ("x = 1", 0),
    ],
)
def test_a_function_that_is_too_complex_is_found(branch: str, ways: int) -> None:
    limit = house_rules.COMPLEXITY_MAX
    source = f"def f():\n    {branch}\n" + "    if x: pass\n" * (limit - 1 - ways)
    assert list(house_rules.complex_functions([Module("qserver/a.py", source)])) == []
    module = Module("qserver/a.py", f"{source}    if x: pass\n")
    found = list(house_rules.complex_functions([module]))
    assert found == [f"qserver/a.py:1: f has complexity {limit + 1}"]


def test_a_line_that_is_too_long_is_found_at_its_number() -> None:
    longest = "#" * house_rules.COLUMNS_MAX
    found = complaints(house_rules.lines_stay_short, "qserver/cli.py", f"{longest}\n{longest}#\n")
    assert found == ["qserver/cli.py:2: 101 characters; the most is 100"]


def test_a_module_without_a_docstring_is_found() -> None:
    rule = house_rules.modules_open_with_their_purpose
    assert len(complaints(rule, "qserver/cli.py", "import sys\n")) == 1
    assert complaints(rule, "qserver/cli.py", '"""What this is."""\nimport sys\n') == []


def test_a_name_that_says_nothing_is_found() -> None:
    rule = house_rules.names_say_something
    for path in ("qserver/storage/utils.py", "qserver/common/__init__.py"):
        assert len(complaints(rule, path, "")) == 1
    assert complaints(rule, "qserver/storage/btree.py", "") == []
