"""Every rule, by plans before and after it.

    schema          definitions; `rows TABLE NUMBER` says how large a table is taken to be, and
                    `values TABLE NUMBER` how many values its columns have
    query           one statement
    before          the plan as the rule gets it: the earlier rules of `RULES` have been applied
    after           the plan as it leaves it

To write the plans of all files anew, run these tests with QSERVER_GOLDEN=write and read the diff.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import pytest

from qserver.sql.explain import explain
from qserver.sql.optimizer import RULES, Rule, optimize
from qserver.sql.statistics import Sizes
from qserver.values.distinct import Distinct
from qserver.values.schema import Table
from tests.given import GIVEN
from tests.sql.binder.catalogs import TestCatalog
from tests.sql.binder.statements import bind_text, define_text

HERE = Path(__file__).parent
FILES = sorted(HERE.glob("*/*.txt"))
NAMES = [str(path.relative_to(HERE)) for path in FILES]
PARTS = ("schema", "query", "before", "after")


class Known(Sizes):
    """The sizes of tables, and how many values any columns of a table have."""

    def __init__(self, sizes: dict[str, int], values: dict[str, int]) -> None:
        super().__init__(lambda table: sizes.get(table.name, 100))
        self._values = values

    def distinct(self, table: Table, positions: tuple[int, ...]) -> Distinct | None:
        values = self._values.get(table.name)
        return None if values is None else Distinct(values, 0.0)


@dataclass(slots=True)
class RuleCase:
    """One file."""

    schema: str
    query: str
    before: str
    after: str

    @classmethod
    def read(cls, path: Path) -> RuleCase:
        found: dict[str, list[str]] = {}
        lines: list[str] = []
        for line in path.read_text().splitlines():
            if line.startswith("--- "):
                lines = found[line.removeprefix("--- ")] = []
            else:
                lines.append(line)
        return cls(*("\n".join(found.get(part, ())).strip("\n") for part in PARTS))

    def write(self, path: Path) -> None:
        path.write_text("".join(f"--- {part}\n{getattr(self, part)}\n" for part in PARTS))

    def plans(self, rule: Rule) -> tuple[str, str]:
        """The plans before and after the rule, as they are found now."""
        catalog, sizes, values = TestCatalog(), dict[str, int](), dict[str, int]()
        for line in self.schema.splitlines():
            words = line.split()
            if words[0] == "rows":
                sizes[words[1]] = int(words[2])
            elif words[0] == "values":
                values[words[1]] = int(words[2])
            else:
                assert define_text(catalog, line), line

        statistics = Known(sizes, values)
        at = RULES.index(rule)
        bound = bind_text(catalog, self.query).statement
        before = optimize(bound, statistics, RULES[:at])
        after = optimize(before, statistics, (rule,))
        return "\n".join(explain(before)), "\n".join(explain(after))


def rule_named(name: str) -> Rule:
    (rule,) = (each for each in RULES if each.__name__ == name)
    return rule


@pytest.mark.parametrize("path", FILES, ids=NAMES)
def test_a_rule_changes_the_plan_as_the_file_says(path: Path) -> None:
    case = RuleCase.read(path)
    before, after = case.plans(rule_named(path.parent.name))
    if GIVEN.get("QSERVER_GOLDEN") == "write":
        RuleCase(case.schema, case.query, before, after).write(path)
        return
    assert before == case.before
    assert after == case.after


@pytest.mark.parametrize("rule", RULES, ids=lambda rule: rule.__name__)
def test_every_rule_has_files(rule: Rule) -> None:
    assert sum(path.parent.name == rule.__name__ for path in FILES) >= 2


@pytest.mark.parametrize("path", FILES, ids=NAMES)
def test_a_plan_is_left_alone_exactly_where_the_name_says_so(path: Path) -> None:
    before, after = RuleCase.read(path).plans(rule_named(path.parent.name))
    assert (before == after) == path.stem.startswith("leaves_")
