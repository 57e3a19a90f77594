"""The docs name what is there, and all of it: links, commands, files, and the tables of the code.

A sentence can still be wrong. But nothing can be added, removed or renamed in the places that are
listed here without its page being looked at.
"""

from __future__ import annotations

import ast
import json
import re
from collections import Counter
from collections.abc import Mapping
from functools import cache
from importlib.util import find_spec
from keyword import iskeyword
from pathlib import Path
from typing import Any

import pytest

from docs.generate.pages import generated
from qserver import errors, limits
from qserver.cli.command_line import command_line
from qserver.config import SETTINGS
from qserver.control.open_transactions import OpenTransactionsStatistics
from qserver.control.records import SCOPES
from qserver.control.space import SpaceStatistics
from qserver.durability.page_cache import PageCache
from qserver.engine import messages
from qserver.functions import all_functions
from qserver.http1 import Counters
from qserver.pgwire import Statistics
from qserver.query.catalog.data import relations
from qserver.sql.optimizer import RULES as OPTIMIZER_RULES
from qserver.web.description.catalogue import ROUTES
from qserver.web.description.shapes import NamedQueryRequest, QueryRequest, TransactionRequest
from qserver.web.service.exposition import server_text
from qserver.web.service.metrics import Metrics
from qserver.web.statuses import STATUSES
from simulations.__main__ import _parser
from simulations.checkers.anomaly import SEVERITY
from simulations.faults import CLUSTER_KINDS, KINDS, NODE_KINDS, PROFILES
from simulations.mutants import MUTANTS, Mutant
from simulations.nodes import NODES_SOMETIMES
from simulations.observations import SOMETIMES
from simulations.replicated import REPLICATED_SOMETIMES
from simulations.results import Verdict
from simulations.trace import KINDS as EVENT_KINDS
from simulations.workloads import WORKLOADS
from tests.differential.accepted import RULES
from tests.house_rules import MAY_IMPORT
from tests.tree_names import files_of_the_tree, is_name

ROOT = Path(__file__).parent.parent
DATA = sorted((ROOT / "docs" / "performance").glob("*.json"))
PAGES = ("README.md", *(f"docs/{path.name}" for path in sorted((ROOT / "docs").glob("*.md"))))

FENCED = re.compile(r"^```\w*\n(.*?)^```$", re.MULTILINE | re.DOTALL)
SPAN = re.compile(r"`([^`\n]+)`")
LINK = re.compile(r"\[[^\]]*\]\(([^)\s]+)\)")
HEADING = re.compile(r"^#+ (.+)$", re.MULTILINE)
QUOTED = re.compile(r'"([^"]+)"')
MODULE = re.compile(r"python -m ([\w.]+)")
QSERVER = re.compile(r"(?:^|\s)qserver (?!qserver\b)([a-z][a-z-]*)([^\n|;&>#]*)", re.MULTILINE)
IN_QUOTES = re.compile(r"""(['"]).*?(?:\1|$)""")
TARGET = re.compile(r"^(?:\$ )?make ([a-z-]+)", re.MULTILINE)
METRIC = re.compile(r"`(qserver_(?!catalog\b)\w+|process_\w+_(?:seconds|bytes|fds|total))`")
FILE = re.compile(r"\w[\w./]*(\.(py|txt|toml|md|js|json|svg|lark)|/)")
FLAG = re.compile(r"(?<![\w-])--?[a-z][a-z-]*")

ACTORS = (
    "checkpointer",
    "coordinator",
    "gateway",
    "generation",
    "log_writer",
    "sequences",
    "shard",
)
# In code type, and not from this tree.
STRANGERS = frozenset(
    {"curl", "seed7.html", "*/", "\\|/", "\\|\\|/", "jsonb_path_query", "json_to_tsvector"}
    | {"GET /", "/*+ STREAM */", "RateLimit", "Via", "Allow", "Location", "Host", "ETag"}
    | {"Accept", "OPTIONS", "PORT", "P1Y2M3DT4H5M6S", "_2", "control.qserver", "qserver.lock"}
)
# Loops whose awaits the page tells by what they wait for.
LOOPS = frozenset({"run", "take", "commit", "_commit", "_first_try", "_publish", "_before", "read"})


@cache
def text_of(page: str) -> str:
    return (ROOT / page).read_text(encoding="utf-8")


def prose(text: str) -> str:
    """A page without its code blocks."""
    return FENCED.sub("", text)


def table(page: str, first_column: str) -> dict[str, list[str]]:
    """The rows of the table whose first column has that name, by their first cell."""
    rows: dict[str, list[str]] = {}
    inside = False
    for line in prose(text_of(page)).splitlines():
        cells = [cell.strip() for cell in line.strip("| ").split("|")]
        if not line.startswith("|"):
            inside = False
        elif cells[0] == first_column:
            inside = True
        elif inside and not line.startswith("|-"):
            assert cells[0] not in rows, f"{cells[0]} is twice in a table of {page}"
            rows[cells[0]] = cells[1:]
    assert rows, f"{page} has no table of {first_column}"
    return rows


def names_in(cells: list[str]) -> list[str]:
    return [name for cell in cells for name in SPAN.findall(cell)]


# --- links, commands, files and names ------------------------------------------------------------


def anchors(text: str) -> list[str]:
    """What headings are called in links."""
    return [
        re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-")
        for heading in HEADING.findall(prose(text))
    ]


def broken_links(page: str, text: str) -> list[str]:
    broken = []
    for link in LINK.findall(prose(text)):
        path, _, anchor = link.partition("#")
        if "://" in path:
            continue
        target = (ROOT / page).parent / path if path else ROOT / page
        there = target.exists()
        if there and anchor:
            there = anchor in anchors(target.read_text(encoding="utf-8"))
        if not there:
            broken.append(link)
    return broken


def unknown_commands(text: str) -> list[str]:
    code = "\n".join([*FENCED.findall(text), *SPAN.findall(prose(text))])
    makefile = text_of("Makefile")
    unknown = [
        f"make {target}"
        for target in TARGET.findall(code)
        if re.search(rf"^{target}:", makefile, re.MULTILINE) is None
    ]
    unknown += [
        f"python -m {module}" for module in MODULE.findall(code) if not runs(module.rstrip("."))
    ]
    return unknown + [
        f"qserver {name} {word}".strip()
        for name, rest in QSERVER.findall(code)
        for word in ("", *FLAG.findall(IN_QUOTES.sub("", rest).split(" -- ")[0]))
        if (word or name) not in words_of(name)
    ]


@cache
def words_of(name: str) -> frozenset[str]:
    """The name of a command of qserver, if there is one, and all flags that it takes."""
    (commands,) = [each.choices for each in command_line()._actions if each.dest == "command"]
    assert isinstance(commands, dict)
    words, parsers = {name} & set(commands), [commands[name]] if name in commands else []
    for parser in parsers:
        for action in parser._actions:
            words.update(action.option_strings)
            if isinstance(action.choices, dict):
                parsers += action.choices.values()
    return frozenset(words)


def runs(module: str) -> bool:
    try:
        found = find_spec(module)
        if found is not None and found.submodule_search_locations is not None:
            found = find_spec(f"{module}.__main__")
    except ModuleNotFoundError:
        return False
    return found is not None


def unknown_names(text: str) -> list[str]:
    """Files and identifiers in code type that are nowhere in the tree."""
    unknown = []
    for span in SPAN.findall(prose(text)):
        if span in STRANGERS or len(span) == 1 or iskeyword(span) or METRIC.fullmatch(f"`{span}`"):
            continue
        if FILE.fullmatch(span):
            known = span in files_of_the_tree()
        elif re.fullmatch(r"[A-Za-z_]\w*(\.[A-Za-z_]\w*)*", span):
            known = span in files_of_the_tree() or is_name(span)
        else:
            continue
        if not known:
            unknown.append(span)
    return unknown


@pytest.mark.parametrize("page", PAGES)
def test_every_link_leads_somewhere(page: str) -> None:
    assert broken_links(page, text_of(page)) == []


@pytest.mark.parametrize("page", PAGES)
def test_every_command_that_is_named_can_be_run(page: str) -> None:
    assert unknown_commands(text_of(page)) == []


@pytest.mark.parametrize("page", PAGES)
def test_every_file_and_identifier_that_is_named_is_in_the_tree(page: str) -> None:
    assert unknown_names(text_of(page)) == []


def test_what_is_wrong_in_a_page_is_found() -> None:
    links = "[a](nowhere.md) [b](docs/glossary.md#nothing) [c](LICENSE) [d](https://example.org)"
    assert broken_links("README.md", links) == ["nowhere.md", "docs/glossary.md#nothing"]
    commands = "`make test` `make sense`\n```console\n$ make tea\n$ python -m nobody.there\n```\n"
    assert unknown_commands(commands) == ["make tea", "make sense", "python -m nobody.there"]
    files = "`lexing/lexer.py` `lexer.py` `engine/lexer.py` `qserver/nobody.py` `qserver/syntax/`"
    assert unknown_names(files) == ["engine/lexer.py", "qserver/nobody.py", "qserver/syntax/"]
    commands = "`qserver serve --port 1` `qserver query`\n```console\n$ qserver sql --kee x\n```\n"
    assert unknown_commands(commands) == ["qserver sql --kee", "qserver query"]
    names = "`Gateway.transact` `Gateway.prepare` `work.when_replied` `work.Gateway` `two words`"
    assert unknown_names(names) == ["Gateway.prepare", "work.Gateway"]
    assert unknown_names("`Incarnation` `_before_nothing` `Reply`") == [
        "Incarnation",
        "_before_nothing",
    ]


# --- generated files -----------------------------------------------------------------------------


@pytest.mark.parametrize("path", generated(), ids=lambda path: path.name)
def test_a_generated_file_is_what_make_docs_would_write(path: Path) -> None:
    assert path.read_text(encoding="utf-8") == generated()[path]


def test_every_chart_has_its_data() -> None:
    charts = set((ROOT / "docs" / "performance").glob("*.svg"))
    assert charts == {path for path in generated() if path.suffix == ".svg"}


def test_every_limit_is_on_the_page_of_limits_with_its_value() -> None:
    lines = text_of("docs/limits.md").splitlines()
    cells = [line.split(" | ") for line in lines if line.startswith("| `")]
    documented = {
        name: value
        for names, values, _ in cells
        for name, value in zip(SPAN.findall(names), values.split(", "), strict=True)
    }
    known = {name: f"{value:,}" for name, value in vars(limits).items() if name.isupper()}
    assert documented == known


@pytest.mark.parametrize("data", DATA, ids=lambda path: path.stem)
def test_every_bar_of_a_chart_is_in_a_table_of_the_page(data: Path) -> None:
    page = text_of("docs/performance.md")
    rows = [line for line in page.splitlines() if line.startswith("|")]
    assert f"](performance/{data.stem}.svg)" in page
    content = json.loads(data.read_text(encoding="utf-8"))
    if "panels" in content:  # lines carry their own numbers
        return
    assert [
        bar["name"]
        for bar in content["rows"]
        if not any(row.startswith(f"| {bar['name']} |") and bar["text"] in row for row in rows)
    ] == []


# --- architecture.md -----------------------------------------------------------------------------


def rooms() -> set[str]:
    """Packages and modules of qserver, as the docs name them."""
    paths = (ROOT / "qserver").iterdir()
    packages = {f"qserver/{path.name}/" for path in paths if (path / "__init__.py").exists()}
    return packages | {"qserver/limits.py"}


@pytest.mark.parametrize(
    ("page", "first_column"), [("README.md", "where"), ("docs/architecture.md", "package")]
)
def test_every_room_is_in_the_table_of_the_tree(page: str, first_column: str) -> None:
    named = names_in(list(table(page, first_column)))
    assert sorted(name for name in named if name.startswith("qserver/")) == sorted(rooms())


def test_the_table_of_imports_is_the_one_that_is_held() -> None:
    documented = {
        room.strip("`"): frozenset(names_in(cells))
        for room, cells in table("docs/architecture.md", "room").items()
    }
    assert documented == {room: others - {room} for room, others in MAY_IMPORT.items()}


def test_every_message_is_in_the_table() -> None:
    documented = names_in(list(table("docs/architecture.md", "message")))
    assert sorted(documented) == sorted(
        name
        for name, value in vars(messages).items()
        if isinstance(value, type) and value.__module__ == messages.__name__
    )


# --- life_of_a_query.md --------------------------------------------------------------------------


def test_every_rule_of_the_optimizer_is_in_the_table_in_their_order() -> None:
    documented = names_in(list(table("docs/life_of_a_query.md", "rule")))
    assert documented == [rule.__name__ for rule in OPTIMIZER_RULES]


# --- life_of_a_commit.md -------------------------------------------------------------------------


@pytest.mark.parametrize("module", ACTORS)
def test_every_function_of_an_actor_that_waits_is_on_the_page(module: str) -> None:
    tree = ast.parse(text_of(f"qserver/engine/{module}.py"))
    waiting = {
        node.name
        for node in ast.walk(tree)
        if isinstance(node, ast.AsyncFunctionDef)
        and any(isinstance(part, ast.Await | ast.AsyncWith) for part in ast.walk(node))
    }
    page = text_of("docs/life_of_a_commit.md")
    assert waiting
    assert [name for name in sorted(waiting - LOOPS) if f"{name}`" not in page] == []


def test_every_point_that_covers_a_crash_exists() -> None:
    lines = [
        line for line in text_of("docs/life_of_a_commit.md").splitlines() if line.startswith("|")
    ]
    named = [point for line in lines for point in QUOTED.findall(line)]
    assert len(named) > 10
    assert [point for point in named if point not in SOMETIMES] == []


# --- simulation.md -------------------------------------------------------------------------------


def mutant_cells(mutant: Mutant) -> list[str]:
    """What the table says of a mutant: the bug, the workloads, what is replaced."""
    places = [place_of(owner, attribute) for owner, attribute, _ in mutant.changes]
    return [mutant.explanation, code_list(mutant.workloads), code_list(places)]


def place_of(owner: Any, attribute: str) -> str:
    """What is replaced, with the module or class that it is of."""
    if attribute != "__code__":
        return f"{owner.__name__.rpartition('.')[2]}.{attribute}"
    name: str = owner.__qualname__
    return name if "." in name else f"{owner.__module__.rpartition('.')[2]}.{name}"


def code_list(names: tuple[str, ...] | list[str]) -> str:
    return ", ".join(f"`{name}`" for name in names)


@pytest.mark.parametrize(
    ("heading", "kinds"),
    [("fault", KINDS), ("node fault", NODE_KINDS), ("cluster fault", CLUSTER_KINDS)],
)
def test_every_fault_is_in_its_table_with_how_often_it_strikes(
    heading: str, kinds: dict[str, float]
) -> None:
    documented = {
        kind.strip("`"): float(cells[0])
        for kind, cells in table("docs/simulation.md", heading).items()
    }
    assert documented == kinds


def test_every_mutant_is_in_the_table_with_its_bug_and_its_workloads() -> None:
    documented = table("docs/simulation.md", "mutant")
    assert documented == {f"`{mutant.name}`": mutant_cells(mutant) for mutant in MUTANTS}


def test_every_point_is_in_the_table() -> None:
    assert list(table("docs/simulation.md", "point")) == list(SOMETIMES)
    assert list(table("docs/simulation.md", "point of hosts")) == list(REPLICATED_SOMETIMES)
    assert list(table("docs/simulation.md", "point of nodes")) == list(NODES_SOMETIMES)


def test_every_workload_and_every_profile_is_in_its_table() -> None:
    assert names_in(list(table("docs/simulation.md", "workload"))) == list(WORKLOADS)
    assert names_in(list(table("docs/simulation.md", "profile"))) == list(PROFILES)


def test_every_anomaly_is_in_the_table_the_worst_first() -> None:
    rows = text_of("docs/simulation.md").partition("the worst first:")[2]
    documented = [name for name in SPAN.findall(rows) if name in SEVERITY]
    assert documented[: len(SEVERITY)] == list(SEVERITY)


def test_every_kind_of_event_is_in_the_table() -> None:
    rows = text_of("docs/simulation.md").partition("an event of this kind |")[2]
    first_cells = "\n".join(re.findall(r"^\| (`[^|]+) \|", rows, re.MULTILINE))
    assert SPAN.findall(first_cells) == list(EVENT_KINDS)


def test_every_exit_code_is_in_the_table_with_its_verdict() -> None:
    documented = table("docs/simulation.md", "exit code")
    verdicts = {str(verdict.value): f"`{verdict.name}`" for verdict in Verdict}
    assert {code: cells[0] for code, cells in documented.items() if cells[0]} == verdicts
    assert list(documented) == [str(code) for code in range(7)]


def test_every_flag_of_the_simulation_is_in_the_table_and_no_other_is_named() -> None:
    flags = {flag for action in _parser()._actions for flag in action.option_strings}
    documented = FLAG.findall(" ".join(table("docs/simulation.md", "flag")))
    assert sorted(documented) == sorted(flags)
    for page in PAGES:
        commands = re.findall(r"python -m simulations.*", text_of(page))
        used = [flag for command in commands for flag in FLAG.findall(command.partition("#")[0])]
        assert [flag for flag in used if flag not in flags and flag != "-m"] == []


# --- sql.md --------------------------------------------------------------------------------------


def names_below(heading: str) -> list[str]:
    """The names in the tables of a section of sql.md, in order."""
    section = text_of("docs/sql.md").partition(f"\n{heading}\n")[2].partition("\n#")[0]
    return names_in([line for line in section.splitlines() if line.startswith("|")])


@pytest.mark.parametrize(
    ("heading", "known"),
    [
        ("### For one row", all_functions.FUNCTIONS),
        ("### Aggregates", all_functions.AGGREGATES),
        ("### Functions that make rows", all_functions.TABLE_FUNCTIONS),
    ],
)
def test_every_function_is_in_its_table_once(heading: str, known: Mapping[str, object]) -> None:
    assert sorted(names_below(heading)) == sorted(known)


def test_every_accepted_difference_is_in_the_table_with_its_reason() -> None:
    rules = {f"`{rule.name}`": [rule.reason] for rule in RULES}
    assert table("docs/sql.md", "rule") == rules


def test_the_docs_count_the_relations_of_each_catalog() -> None:
    documented = table("docs/sql.md", "schema")
    counted = Counter(schema for schema, _ in relations()) | {"qserver_catalog": 1}
    assert {schema.strip("`"): int(cells[0]) for schema, cells in documented.items()} == counted


# --- glossary.md ---------------------------------------------------------------------------------


def test_the_words_of_the_glossary_are_sorted_and_each_has_a_meaning() -> None:
    words = table("docs/glossary.md", "word")
    assert list(words) == sorted(words, key=str.casefold)
    assert [word for word, meaning in words.items() if meaning in ([], [""])] == []


def test_the_glossary_has_the_words_of_the_house_and_no_ordinary_ones() -> None:
    words = table("docs/glossary.md", "word")
    assert {"delta", "footprint", "generation", "range", "round", "snapshot"} <= set(words)
    assert len(words) <= 30, "rename what only we say, instead of explaining it"


def test_every_setting_is_in_the_docs_as_it_is_declared() -> None:
    rows = table("docs/operations.md", "setting")
    declared = {
        f"`{each.name}`": [
            f"`{each.flag}`" if each.field else "",
            f"`{each.default}`" if each.default else "",
            each.meaning,
        ]
        for each in SETTINGS
    }
    assert rows == declared


@cache
def metrics() -> dict[str, str]:
    """The metrics of a page for Prometheus, with their kinds."""
    none_open = OpenTransactionsStatistics(0, 0, 0, 0, {}, 0.0)
    pages, space = PageCache().statistics(), SpaceStatistics(0, 0)
    known = Metrics(), (), 0.0, Counters(), pages, space, 0, 0, none_open
    sessions = Statistics(**dict.fromkeys(Statistics.__struct_fields__, 0))
    page = server_text(*known, postgres=sessions).decode()
    return dict(re.findall(r"^# TYPE (\w+) (\w+)$", page, re.MULTILINE))


def unknown_metrics(text: str) -> list[str]:
    return [name for name in METRIC.findall(text) if name not in metrics()]


def test_every_metric_is_in_the_table_with_its_kind() -> None:
    documented = table("docs/operations.md", "metric")
    assert {name.strip("`"): cells[0] for name, cells in documented.items()} == metrics()


@pytest.mark.parametrize("page", PAGES)
def test_every_metric_that_is_named_is_exported(page: str) -> None:
    assert unknown_metrics(text_of(page)) == []


def test_a_metric_that_does_not_exist_is_found() -> None:
    text = "`qserver_restarts_total` `qserver_crashes_total` `qserver_catalog.definitions`"
    assert unknown_metrics(text) == ["qserver_crashes_total"]


def test_every_option_of_a_query_and_a_transaction_is_in_the_docs() -> None:
    fields = {name.strip("`") for name in table("docs/http.md", "field")}
    taken = {*QueryRequest.__struct_fields__, *NamedQueryRequest.__struct_fields__}
    assert fields == taken
    section = text_of("docs/http.md").split("\n## Transactions")[1].split("```")[0]
    named = set(re.findall(r"`(\w+)`", section))
    assert set(TransactionRequest.__struct_fields__) <= named


def test_every_route_is_in_the_docs() -> None:
    text = text_of("docs/http.md")
    missing = [
        f"{route.method} {route.path}"
        for route in ROUTES
        if f"{route.method} {route.path}" not in text and f"`{route.path}`" not in text
    ]
    assert not missing


def test_every_code_of_our_own_is_in_the_docs() -> None:
    own = {
        each.code: each.name
        for each in vars(errors).values()
        if isinstance(each, type)
        and issubclass(each, errors.QserverError)
        and each.code.startswith("QS")
    }
    assert {code: cells[0] for code, cells in table("docs/http.md", "code").items()} == own


def test_every_scope_and_status_is_in_the_docs() -> None:
    assert set(table("docs/http.md", "scope")) == {f"`{scope}`" for scope in SCOPES}
    assert {str(status) for status in STATUSES.values()} <= set(table("docs/http.md", "status"))
