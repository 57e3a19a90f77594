"""The rules of the house, each one a function over a module's syntax tree.

A rule takes a `Module` and yields one sentence for every place that breaks it; `RULES` at the end
lists them. `test_rooms.py` holds the tree to them and shows that each is able to fail. They look
at the source and import nothing, so a module that does not run is judged all the same.

    cli, benchmarks                      whole tree
    web                                  knows HTTP                  (client: errors, values;
    pgwire                               knows PostgreSQL's protocol  dbapi: client, lexing)
    http1, cluster                       errors and limits alone
    probes, workloads, control           -+
    query                                 |  clock, chance, files and threads
    sql               | engine            |  come in as arguments
    lexing, functions | durability        |
                      | storage           |  pure, they do not wait either: values,
    values                                |  lexing, functions, sql, storage
    errors, limits                       -+

A room imports itself and what stands below it, never beside it: that is `MAY_IMPORT`.
"""

from __future__ import annotations

import ast
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from functools import cache
from pathlib import Path, PurePosixPath
from typing import Final

ROOT: Final = Path(__file__).parent.parent
LINES_MAX: Final = 600
COLUMNS_MAX: Final = 100
FUNCTION_LINES_MAX: Final = 60
COMPLEXITY_MAX: Final = 20
COMPLEX_FUNCTIONS_MAX: Final = 4
"""So many may be more complex: loops in which each step would be a call of the hot path."""

# Who may import whom. A room may always import itself; "qserver" stands for the package's own
# names (its version). Nothing but the cli may import `benchmarks`.
_GROUND: Final = frozenset({"errors", "limits"})
_ENGINE: Final = _GROUND | {"values", "storage", "durability"}
_SQL: Final = _GROUND | {"values", "lexing", "functions"}
_QUERY: Final = _ENGINE | _SQL | {"sql", "engine"}
_CONTROL: Final = _QUERY | {"query"}
_PGWIRE: Final = _CONTROL | {"qserver", "control", "http1"}
_WEB: Final = _PGWIRE | {
    *("config", "replication", "archive", "cluster", "probes", "workloads", "pgwire", "console"),
}
_ALL: Final = _WEB | {"web", "client", "dbapi", "sqlalchemy", "mcp", "cli", "benchmarks"}
MAY_IMPORT: Final[Mapping[str, frozenset[str]]] = {
    "qserver": frozenset(),
    "errors": frozenset(),
    "limits": frozenset(),
    "config": _GROUND,
    "values": _GROUND,
    "lexing": _GROUND | {"values"},
    "functions": _GROUND | {"values"},
    "sql": _SQL,
    "storage": _GROUND | {"values"},
    "durability": _GROUND | {"values", "storage"},
    "replication": _GROUND | {"durability"},
    "archive": _GROUND | {"storage", "durability", "replication"},
    "engine": _ENGINE,
    "query": _QUERY,
    "probes": _CONTROL,
    "workloads": _CONTROL,
    "control": _CONTROL | {"cluster", "replication"},
    "cluster": _GROUND,
    "console": _GROUND,
    "http1": _GROUND,
    "pgwire": _PGWIRE,
    "web": _WEB,
    "client": frozenset({"qserver", "errors", "values"}),
    "dbapi": frozenset({"qserver", "errors", "values", "lexing", "client"}),
    "sqlalchemy": frozenset({"qserver", "client", "dbapi"}),
    "mcp": _GROUND | {"qserver", "client"},
    "cli": _ALL,
    "benchmarks": _ALL,
    "__main__": frozenset({"cli"}),
}
PURE: Final = frozenset({"values", "lexing", "functions", "sql", "storage"})
BELOW_WEB: Final = PURE | {
    *("errors", "limits", "durability", "replication", "engine", "query", "probes", "control"),
}

# The world outside: what a simulation could not repeat. Modules count when they are imported,
# functions when they are named.
WORLD_MODULES: Final[Mapping[str, str]] = {
    "time": "the clock",
    **dict.fromkeys(("random", "secrets", "uuid"), "chance"),
    **dict.fromkeys(("os", "subprocess", "signal", "socket"), "the operating system"),
    **dict.fromkeys(("pathlib", "shutil", "sqlite3", "tempfile"), "files"),
    **dict.fromkeys(("threading", "_thread", "concurrent", "multiprocessing"), "threads"),
    **dict.fromkeys(("trio.to_thread", "trio.from_thread"), "threads"),
    "asyncio": "another event loop",
}
WORLD_NAMES: Final[Mapping[str, str]] = {
    "datetime.datetime.now": "the clock",
    "datetime.datetime.utcnow": "the clock",
    "datetime.datetime.today": "the clock",
    "datetime.date.today": "the clock",
    "open": "files",
    "trio.to_thread": "threads",
    "trio.from_thread": "threads",
    "__import__": "an import that this table cannot see",
    "importlib.import_module": "an import that this table cannot see",
}
# Chance is an argument, and an argument has a type.
FOR_TYPES_ONLY: Final = frozenset({"random.Random"})
# A value that a caller brings; only making new ones is chance.
HARMLESS: Final = frozenset({"uuid.UUID"})
# The places where the world comes in, each with what it may touch. Keep this short.
WORLD_EXCEPTIONS: Final[Mapping[str, frozenset[str]]] = {
    "qserver/sql/parser.py": frozenset({"pathlib"}),  # the cached tables of the grammar
    "qserver/functions/regex/time_limit.py": frozenset({"time"}),
    "qserver/durability/restoring.py": frozenset({"pathlib"}),
    "qserver/durability/branch_files.py": frozenset({"pathlib"}),
    "qserver/durability/check.py": frozenset({"pathlib"}),
    "qserver/durability/live_copy.py": frozenset({"pathlib", "shutil", "time"}),
    "qserver/durability/live_log.py": frozenset({"os", "pathlib", "time"}),
    "qserver/durability/copy_mark.py": frozenset({"pathlib"}),
    "qserver/durability/sqlite.py": frozenset({"pathlib", "time"}),
    "qserver/durability/sqlite_file.py": frozenset({"pathlib", "sqlite3"}),
    "qserver/durability/data_file.py": frozenset({"os", "pathlib", "shutil", "sqlite3"}),
    "qserver/durability/sqlite_connection.py": frozenset({"pathlib", "sqlite3"}),
    "qserver/durability/sqlite_errors.py": frozenset({"pathlib", "sqlite3"}),
    "qserver/durability/files.py": frozenset({"os", "pathlib"}),
    "qserver/durability/foreign_writes.py": frozenset({"os", "pathlib"}),
    "qserver/durability/high_water_mark.py": frozenset({"os", "pathlib"}),
    "qserver/durability/suspected_damage.py": frozenset({"os", "pathlib", "sqlite3"}),
    "qserver/durability/serial_queue.py": frozenset({"threading"}),
    "qserver/durability/thread_pool.py": frozenset({"threading"}),
    "qserver/durability/upkeep.py": frozenset({"sqlite3"}),
    "qserver/durability/wal_sync.py": frozenset({"os", "pathlib", "threading"}),
    "qserver/durability/reserve.py": frozenset({"os", "pathlib"}),
    "qserver/durability/still_file.py": frozenset({"os", "pathlib", "sqlite3"}),
    "qserver/durability/scratch_file.py": frozenset({"os", "pathlib", "tempfile"}),
    "qserver/durability/folder.py": frozenset({"os", "pathlib"}),
    "qserver/durability/data_folder.py": frozenset({"pathlib"}),
}

# Files that name each other: types that are defined by each other, and an object with its parts.
CIRCLES: Final = frozenset(
    {
        frozenset({"qserver.sql.expressions", "qserver.sql.plan"}),
        frozenset(
            {
                "qserver.sql.ast",
                *(
                    f"qserver.sql.ast.{n}"
                    for n in ("changes", "definitions", "expressions", "queries", "sessions")
                ),
            }
        ),
        frozenset(
            f"qserver.sql.binder.{name}"
            for name in (
                "binding",
                "tables.common_tables",
                "tables.recursive_tables",
                "names.scope",
            )
        ),
        frozenset({"qserver.query.request", "qserver.query.sequence_values"}),
        frozenset(f"simulations.{name}" for name in ("channels", "observations", "world")),
        frozenset(f"qserver.http1.{name}" for name in ("connection", "incoming", "parts")),
    }
)

MUTABLE_DISPLAYS: Final = (
    ast.List,
    ast.Dict,
    ast.Set,
    ast.ListComp,
    ast.DictComp,
    ast.SetComp,
)
MAKERS_OF_TABLES: Final = frozenset({"list", "dict", "set"})
WRITES_OF_TABLES: Final = frozenset(
    {"add", "append", "clear", "discard", "extend", "insert", "pop", "popitem", "remove", "reverse"}
    | {"setdefault", "sort", "update"}
    | {"difference_update", "intersection_update", "symmetric_difference_update"}
)
"""The methods of lists, dictionaries and sets that change them."""
MAKERS_OF_STATE: Final = frozenset(
    {f"collections.{name}" for name in ("defaultdict", "deque", "Counter", "OrderedDict")}
    | {"bytearray", "itertools.count", "weakref.WeakKeyDictionary", "weakref.WeakValueDictionary"}
)
"""What they make is of use only if it changes."""
OBJECTS_OF_MODULES: Final = frozenset({"qserver.storage.page.EMPTY"})
"""Objects of classes that change theirs, though these never do: an unsaved page is not evicted."""
EMPTY_WORDS: Final = frozenset({"utils", "util", "helpers", "common", "base", "manager", "misc"})


@dataclass(frozen=True, slots=True)
class Import:
    """One imported name, spelled out from the root: `from ..values import keys` in full."""

    name: str
    line: int
    for_types_only: bool


class Module:
    """One source file, parsed: its dotted name, its room, what it imports and what it names."""

    def __init__(self, path: str, source: str) -> None:
        self.path = path
        self.lines = source.splitlines()
        self.tree = ast.parse(source, path)
        self.nodes = nodes_of(self.tree)
        parts = PurePosixPath(path).with_suffix("").parts
        self.is_package = parts[-1] == "__init__"
        self.name = ".".join(parts[:-1] if self.is_package else parts)
        self.imports = tuple(_imports(self))
        self._origins = _origins(self)

    @property
    def room(self) -> str | None:
        """The row of the table that this module belongs to; None outside of qserver."""
        return room_of(self.name)

    def origin(self, node: ast.expr) -> str | None:
        """What `a.b.c` names, with `a` replaced by what it was imported as."""
        match node:
            case ast.Name(id=name):
                return self._origins.get(name, name)
            case ast.Attribute(value=value, attr=attribute):
                owner = self.origin(value)
                return None if owner is None else f"{owner}.{attribute}"
            case _:
                return None

    def at(self, line: int, sentence: str) -> str:
        return f"{self.path}:{line}: {sentence}"


_PLAIN: Final = frozenset({bool, bytes, complex, float, int, str, type(None), type(...)})
"""What a field of a node may hold that is no node and no list of them: most fields do."""


_LEAVES: Final = frozenset({ast.Name, ast.Constant, ast.alias})
"""Nodes that have no others in them: most have not."""


def nodes_of(tree: ast.AST) -> list[ast.AST]:
    """All nodes of a tree but those without fields, which half of them are: contexts, operators.

    `ast.walk` takes three times as long, and all files of the tree are walked.
    """
    found = [tree]
    for node in found:  # it grows meanwhile
        if type(node) not in _LEAVES:
            _add_children(node, found)
    return found


def _children(node: ast.AST) -> list[ast.AST]:
    found: list[ast.AST] = []
    _add_children(node, found)
    return found


def _add_children(node: ast.AST, found: list[ast.AST]) -> None:
    for value in vars(node).values():
        kind = type(value)
        if kind in _PLAIN:
            continue
        if kind is list:
            found += [each for each in value if type(each) not in _PLAIN]
        elif value._fields:
            found.append(value)


def room_of(name: str) -> str | None:
    first, *rest = name.split(".")
    if first != "qserver":
        return None
    return rest[0] if rest else "qserver"


def imports_follow_the_table(module: Module) -> Iterator[str]:
    room = module.room
    if room is None:
        return
    if room not in MAY_IMPORT:
        yield module.at(1, f"the room {room!r} is not in the table")
        return
    for imported in module.imports:
        target = room_of(imported.name)
        if target is not None and target not in MAY_IMPORT:
            target = "qserver"  # a name of the package itself, such as __version__
        if target not in (None, room) and target not in MAY_IMPORT[room]:
            yield module.at(imported.line, f"{room} may not import {imported.name}")


@cache
def door_names() -> frozenset[str]:
    """What `sql` shows of itself."""
    tree = ast.parse((ROOT / "qserver/sql/__init__.py").read_text(encoding="utf-8"))
    imports = [each for each in tree.body if isinstance(each, ast.ImportFrom)]
    return frozenset(name.asname for each in imports for name in each.names if name.asname)


def sql_is_entered_by_its_door(module: Module) -> Iterator[str]:
    if module.room in (None, "sql"):
        return
    for imported in module.imports:
        name = imported.name.removeprefix("qserver.sql.")
        if name != imported.name and name not in door_names():
            yield module.at(imported.line, f"{imported.name} is not what sql/__init__.py shows")


def circles(modules: Iterable[Module]) -> set[frozenset[str]]:
    """Groups of files of which each leads to all others by imports, those for types included."""
    known = {module.name: module for module in modules}
    targets = {
        name: {
            each.name if each.name in known else _parent(each.name) for each in module.imports
        }.intersection(known)
        for name, module in known.items()
    }
    reached: dict[str, set[str]] = {}
    for name in known:
        found, waiting = set[str](), [name]
        while waiting:
            new = targets[waiting.pop()] - found
            found |= new
            waiting += new
        reached[name] = found
    groups = (
        frozenset(other for other in found if name in reached[other])
        for name, found in reached.items()
    )
    return {group for group in groups if len(group) > 1}


def _parent(name: str) -> str:
    return name.rpartition(".")[0]


def product_does_not_know_its_tests(module: Module) -> Iterator[str]:
    if module.room is None:
        return
    for imported in module.imports:
        if imported.name.split(".")[0] in ("simulations", "tests"):
            yield module.at(imported.line, f"qserver may not import {imported.name}")


def world_comes_in_as_an_argument(module: Module) -> Iterator[str]:
    if module.room not in BELOW_WEB:
        return
    allowed = WORLD_EXCEPTIONS.get(module.path, frozenset())
    for imported in module.imports:
        if imported.for_types_only and imported.name in FOR_TYPES_ONLY:
            continue
        if imported.name in HARMLESS:
            continue
        for name, what in WORLD_MODULES.items():
            if _within(imported.name, name) and name not in allowed:
                yield module.at(imported.line, f"{imported.name} is {what}: take it as an argument")
    for node in module.nodes:
        if not isinstance(node, ast.Name | ast.Attribute):
            continue
        named = module.origin(node)
        if named is not None and named in WORLD_NAMES and named not in allowed:
            yield module.at(node.lineno, f"{named} is {WORLD_NAMES[named]}: take it as an argument")


def pure_rooms_do_not_wait(module: Module) -> Iterator[str]:
    if module.room not in PURE:
        return
    for imported in module.imports:
        if _within(imported.name, "trio"):
            yield module.at(imported.line, f"{module.room} is pure and may not import trio")
    for node in module.nodes:
        if isinstance(node, ast.AsyncFunctionDef):
            yield module.at(node.lineno, f"{module.room} is pure: `async def {node.name}`")
        elif isinstance(node, ast.comprehension) and node.is_async:
            yield module.at(node.target.lineno, f"{module.room} is pure: `async for`")


def no_await_inside_an_augmented_assignment(module: Module) -> Iterator[str]:
    """`x += await f()` reads x, waits, then writes: what others added meanwhile is lost."""
    for node in module.nodes:
        if isinstance(node, ast.AugAssign) and any(_waits(part) for part in ast.walk(node.value)):
            yield module.at(node.lineno, "await first, then change: this loses updates")


def unrun_generators(modules: Iterable[Module]) -> Iterator[str]:
    """A statement that only makes a generator does nothing: `yield from` was left out.

    A name counts if every function of that name is a generator. Below the web work is generators;
    the client wraps its own.
    """
    modules = [module for module in modules if module.room in BELOW_WEB]
    functions = [
        node for module in modules for node in module.nodes if isinstance(node, ast.FunctionDef)
    ]
    others = {each.name for each in functions if not _is_generator(each)}
    generators = {each.name for each in functions} - others - set(dir(set))
    for module in modules:
        for node in module.nodes:
            match node:
                case ast.Expr(
                    value=ast.Call(func=ast.Attribute(attr=name) | ast.Name(id=name))
                ) if name in generators:
                    yield module.at(node.lineno, f"{name} is made and not run")


def no_mutable_state_in_modules(module: Module) -> Iterator[str]:
    """Two databases, or two simulated runs, in one process must not meet in a global."""
    if module.room not in BELOW_WEB:
        return
    for statement in _module_level(module.tree.body):
        for name, value in _assigned(statement):
            constant = name.isupper() or (name.startswith("__") and name.endswith("__"))
            maker = module.origin(value.func) if isinstance(value, ast.Call) else None
            if maker in MAKERS_OF_STATE or (_is_table(module, value) and not constant):
                yield module.at(statement.lineno, f"{name} is mutable state of a module")
    for node in module.nodes:
        if isinstance(node, ast.Global):
            yield module.at(node.lineno, f"global {', '.join(node.names)}: state of a module")


def tables_of_modules_that_change(modules: Iterable[Module]) -> Iterator[str]:
    """The same for tables, whatever their names: no function writes to one."""
    modules = [module for module in modules if module.room in BELOW_WEB]
    tables = {
        f"{module.name}.{name}"
        for module in modules
        for statement in _module_level(module.tree.body)
        for name, value in _assigned(statement)
        if _is_table(module, value)
    }
    for module in modules:
        for node in _written_in_functions(module):
            name = module.origin(node)
            if tables & {name, f"{module.name}.{name}"}:
                yield module.at(node.lineno, f"{name} is mutable state of a module")


def objects_of_modules_that_change(modules: Iterable[Module]) -> Iterator[str]:
    """The same for objects of our own classes: those of which a method sets an attribute."""
    modules = [module for module in modules if module.room in BELOW_WEB]
    changing = {
        f"{module.name}.{node.name}"
        for module in modules
        for node in module.nodes
        if isinstance(node, ast.ClassDef) and _changes_itself(node)
    }
    for module in modules:
        for statement in _module_level(module.tree.body):
            for name, value in _assigned(statement):
                maker = module.origin(value.func) if isinstance(value, ast.Call) else None
                own = f"{module.name}.{name}" in OBJECTS_OF_MODULES
                if not own and changing & {maker, f"{module.name}.{maker}"}:
                    yield module.at(statement.lineno, f"{name} is mutable state of a module")


def files_stay_small(module: Module) -> Iterator[str]:
    if len(module.lines) > LINES_MAX:
        yield module.at(LINES_MAX, f"{len(module.lines)} lines; the most is {LINES_MAX}")


def functions_stay_short(module: Module) -> Iterator[str]:
    for function in _functions(module):
        lines = (function.end_lineno or 0) - function.lineno + 1
        if lines > FUNCTION_LINES_MAX:
            sentence = f"{function.name} has {lines} lines; the most is {FUNCTION_LINES_MAX}"
            yield module.at(function.lineno, sentence)


def complex_functions(modules: Iterable[Module]) -> Iterator[str]:
    """Functions with more than COMPLEXITY_MAX ways through: one, and one for each branch."""
    for module in modules:
        for function in _functions(module):
            found = 1 + sum(map(_branches, _own_nodes(function)))
            if found > COMPLEXITY_MAX:
                yield module.at(function.lineno, f"{function.name} has complexity {found}")


def lines_stay_short(module: Module) -> Iterator[str]:
    for number, line in enumerate(module.lines, 1):
        if len(line) > COLUMNS_MAX:
            yield module.at(number, f"{len(line)} characters; the most is {COLUMNS_MAX}")


def modules_open_with_their_purpose(module: Module) -> Iterator[str]:
    if ast.get_docstring(module.tree) is None:
        yield module.at(1, "no docstring says what this is")


def names_say_something(module: Module) -> Iterator[str]:
    for part in module.name.split("."):
        if part in EMPTY_WORDS:
            yield module.at(1, f"{part!r} says nothing about what is inside")


_Function = ast.FunctionDef | ast.AsyncFunctionDef
Rule = Callable[[Module], Iterator[str]]
RULES: Final[tuple[Rule, ...]] = (
    imports_follow_the_table,
    sql_is_entered_by_its_door,
    product_does_not_know_its_tests,
    world_comes_in_as_an_argument,
    pure_rooms_do_not_wait,
    no_await_inside_an_augmented_assignment,
    no_mutable_state_in_modules,
    files_stay_small,
    functions_stay_short,
    lines_stay_short,
    modules_open_with_their_purpose,
    names_say_something,
)


def _imports(module: Module) -> Iterator[Import]:
    for_types = {
        id(node)
        for branch in module.nodes
        if isinstance(branch, ast.If) and _is_type_checking(branch.test)
        for statement in branch.body
        for node in ast.walk(statement)
    }
    for node in module.nodes:
        if isinstance(node, ast.Import):
            for alias in node.names:
                yield Import(alias.name, node.lineno, id(node) in for_types)
        elif isinstance(node, ast.ImportFrom):
            source = _from(module, node)
            for alias in node.names:
                yield Import(f"{source}.{alias.name}", node.lineno, id(node) in for_types)


def _origins(module: Module) -> dict[str, str]:
    """For each name that an import binds, the full name of what it is bound to."""
    origins: dict[str, str] = {}
    for node in module.nodes:
        if isinstance(node, ast.Import):
            for alias in node.names:
                first = alias.name.split(".")[0]
                origins[alias.asname or first] = alias.name if alias.asname else first
        elif isinstance(node, ast.ImportFrom):
            for alias in node.names:
                origins[alias.asname or alias.name] = f"{_from(module, node)}.{alias.name}"
    return origins


def _from(module: Module, node: ast.ImportFrom) -> str:
    """The module that `from … import` names; each dot is one step up from this package."""
    if node.level == 0:
        return node.module or ""
    parts = module.name.split(".")
    steps_up = node.level - 1 if module.is_package else node.level
    package = parts[: len(parts) - steps_up]
    return ".".join([*package, node.module] if node.module else package)


def _is_type_checking(test: ast.expr) -> bool:
    match test:
        case ast.Name(id="TYPE_CHECKING") | ast.Attribute(attr="TYPE_CHECKING"):
            return True
        case _:
            return False


def _within(name: str, module: str) -> bool:
    return name == module or name.startswith(f"{module}.")


def _waits(node: ast.AST) -> bool:
    if isinstance(node, ast.comprehension):
        return bool(node.is_async)
    return isinstance(node, ast.Await)


def _is_generator(function: ast.FunctionDef) -> bool:
    return any(isinstance(node, ast.Yield | ast.YieldFrom) for node in _own_nodes(function))


def _functions(module: Module) -> Iterator[_Function]:
    if module.room is not None:
        for node in module.nodes:
            if isinstance(node, _Function):
                yield node


def _own_nodes(function: _Function | ast.Lambda) -> Iterator[ast.AST]:
    """The nodes of a function without those of functions inside it."""
    body = function.body
    waiting: list[ast.AST] = [*body] if isinstance(body, list) else [body]
    while waiting:
        node = waiting.pop()
        yield node
        if not isinstance(node, _Function | ast.Lambda):
            waiting += _children(node)


def _is_table(module: Module, value: ast.expr) -> bool:
    if isinstance(value, ast.Call):
        return module.origin(value.func) in MAKERS_OF_TABLES
    return isinstance(value, MUTABLE_DISPLAYS)


def _written_in_functions(module: Module) -> Iterator[ast.expr]:
    """What the functions of a module write to: `t` of `t[key] = value`, `del t[0]`, `t.clear()`."""
    for function in module.nodes:
        if not isinstance(function, _Function | ast.Lambda):
            continue
        for node in _own_nodes(function):
            match node:
                case ast.Subscript(value=written, ctx=ast.Store() | ast.Del()):
                    pass
                case ast.Call(func=ast.Attribute(value=written, attr=name)) if (
                    name in WRITES_OF_TABLES
                ):
                    pass
                case _:
                    continue
            while isinstance(written, ast.Subscript):  # a table in a table
                written = written.value
            yield written


def _branches(node: ast.AST) -> int:
    match node:
        case ast.If() | ast.IfExp() | ast.For() | ast.AsyncFor() | ast.While():
            return 1
        case ast.ExceptHandler() | ast.match_case():
            return 1
        case ast.BoolOp(values=values):
            return len(values) - 1
        case ast.comprehension(ifs=conditions):
            return 1 + len(conditions)
        case _:
            return 0


def _module_level(body: list[ast.stmt]) -> Iterator[ast.stmt]:
    """The statements that run when the module is imported, those of its branches included."""
    for statement in body:
        yield statement
        if not isinstance(statement, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
            for field in ("body", "orelse", "finalbody"):
                yield from _module_level(getattr(statement, field, []))
            for handler in getattr(statement, "handlers", []):
                yield from _module_level(handler.body)


def _assigned(statement: ast.stmt) -> Iterator[tuple[str, ast.expr]]:
    match statement:
        case ast.Assign(targets=targets, value=value):
            for target in targets:
                if isinstance(target, ast.Name):
                    yield target.id, value
        case ast.AnnAssign(target=ast.Name(id=name), value=ast.expr() as value):
            yield name, value


def _changes_itself(node: ast.ClassDef) -> bool:
    return any(
        isinstance(part, ast.Attribute)
        and isinstance(part.ctx, ast.Store)
        and isinstance(part.value, ast.Name)
        and part.value.id == "self"
        for method in node.body
        if isinstance(method, ast.FunctionDef | ast.AsyncFunctionDef) and method.name != "__init__"
        for part in ast.walk(method)
    )
