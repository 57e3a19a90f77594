"""The list of all functions is complete and without contradictions."""

from __future__ import annotations

import re
from importlib import import_module
from pathlib import Path
from typing import Any

from qserver import functions
from qserver.functions import all_functions
from qserver.functions.registry import Aggregate, Function
from qserver.functions.signatures import Signature

KINDS = ("OPERATORS", "FUNCTIONS", "AGGREGATES", "TABLE_FUNCTIONS")


def announced(kind: str) -> list[Signature]:
    return [each for module in all_functions.MODULES for each in getattr(module, kind, ())]


def test_every_module_that_announces_something_is_in_the_list() -> None:
    folder = Path(functions.__file__ or "").parent
    paths = {path.relative_to(folder).with_suffix("") for path in folder.rglob("*.py")}
    names = {
        ".".join(path.parts) for path in paths if path.stem not in ("__init__", "all_functions")
    }
    modules = [import_module(f"qserver.functions.{name}") for name in sorted(names)]
    announcing = [each for each in modules if any(hasattr(each, kind) for kind in KINDS)]
    # `resolve` only passes on what the list has.
    assert {each.__name__ for each in announcing} - {"qserver.functions.resolve"} == {
        each.__name__ for each in all_functions.MODULES
    }


def test_no_signature_is_announced_twice() -> None:
    for kind in KINDS:
        signatures = [(each.name, each.parameters) for each in announced(kind)]
        twice = {each for each in signatures if signatures.count(each) > 1}
        assert twice == set()


def test_a_name_in_templates_means_the_same_object_everywhere() -> None:
    meanings: dict[str, Any] = {}
    for kind in KINDS[:3]:
        for each in announced(kind):
            if isinstance(each, Function | Aggregate):
                for name, value in each.names.items():
                    assert meanings.setdefault(name, value) is value, name


def test_a_name_in_a_template_is_made_known_or_built_in() -> None:
    for kind in KINDS[:2]:
        for each in announced(kind):
            if not isinstance(each, Function) or each.inline is None:
                continue
            places = [f"x{at}" for at in range(len(each.parameters))]
            code = compile(each.inline.format(*places, v="v", w="w"), each.name, "eval")
            attributes = set(re.findall(r"\.(\w+)", each.inline))
            known = {*each.names, *places, "v", "w", "abs", "len", "tuple", "list", "bool", "str"}
            unknown = set(code.co_names) - attributes - known
            assert unknown == set(), f"{each.name}: {each.inline}"


def test_an_operator_that_compares_says_so_by_its_symbol() -> None:
    for each in announced("OPERATORS"):
        if isinstance(each, Function) and each.comparison is not None:
            assert each.comparison == each.symbol == each.name
