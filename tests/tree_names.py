"""What the tree calls things: its files, and the names in its code.

`test_docs.py` holds the docs to this. Comments and docstrings count for nothing here, because they
may be as stale as the docs.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator, Mapping, Sequence
from functools import cache
from itertools import pairwise
from pathlib import Path
from typing import NamedTuple

from qserver.functions import all_functions
from tests.house_rules import nodes_of

ROOT = Path(__file__).parent.parent
TREES = ("qserver", "simulations", "tests", "docs")


@cache
def files_of_the_tree() -> frozenset[str]:
    """The end of each path, from any of its folders on; folders have a slash at their end."""
    tops = [path for path in ROOT.iterdir() if path.is_file()]
    below = [path for top in TREES for path in (ROOT / top).rglob("*") if path.is_file()]
    ends: set[str] = set()
    for path in (*tops, *below):
        parts = path.relative_to(ROOT).parts
        if "__pycache__" in parts:  # what is left of a folder that was removed
            continue
        for start in range(len(parts)):
            ends.add("/".join(parts[start:]))
            ends.update("/".join(parts[start:end]) + "/" for end in range(start + 1, len(parts)))
    return frozenset(ends)


class Names(NamedTuple):
    """The names of the code."""

    words: frozenset[str]
    """Every identifier, and every word of a string that is no docstring."""
    classes: Mapping[str, frozenset[str]]
    """Of each class, by name: what it defines or inherits."""
    modules: Mapping[str, frozenset[str]]
    """Of each module, by its last name: what is defined or imported at its top."""


@cache
def names_of_the_tree() -> Names:
    words: set[str] = set()
    own: dict[str, set[str]] = {}
    bases: dict[str, set[str]] = {}
    modules: dict[str, set[str]] = {}
    for path in (path for top in TREES for path in (ROOT / top).rglob("*.py")):
        if path.name == "test_docs.py":  # it names what does not exist
            continue
        tree = ast.parse(path.read_text(encoding="utf-8"))
        nodes = nodes_of(tree)
        words.update(path.relative_to(ROOT).with_suffix("").parts, words_of(nodes))
        place = path.parent.name if path.stem == "__init__" else path.stem
        defined = modules.setdefault(place, set())
        defined.update(*map(names_bound, tree.body))
        for node in nodes:
            if isinstance(node, ast.ClassDef):
                parts = (part for part in nodes_of(node) if isinstance(part, BINDING))
                attributes = {name for part in parts for name in attributes_of(part)}
                own.setdefault(node.name, set()).update(attributes)
                bases.setdefault(node.name, set()).update(map(base_name, node.bases))
                defined |= attributes  # `mailbox.take` is what a mailbox does
    pages = [ROOT / "Makefile", ROOT / "pyproject.toml"]
    pages += (ROOT / "qserver" / "javascript").glob("*.ts")
    for page in pages:
        words.update(re.findall(r"\w+", page.read_text(encoding="utf-8")))
    # Many functions get their names in a loop: json_each and jsonb_each.
    words.update(all_functions.FUNCTIONS, all_functions.AGGREGATES, all_functions.TABLE_FUNCTIONS)
    return Names(
        frozenset(words),
        {name: frozenset(inherited(name, own, bases)) for name in own},
        {name: frozenset(names) for name, names in modules.items()},
    )


def base_name(base: ast.expr) -> str:
    return ast.unparse(base.value if isinstance(base, ast.Subscript) else base)


NAMED = frozenset(
    {ast.Constant, ast.Name, ast.Attribute, ast.arg, ast.keyword, ast.alias, ast.ImportFrom}
    | {ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef}
)
"""The nodes that have words in them."""

BINDING = (
    *(ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef, ast.Import, ast.ImportFrom),
    *(ast.Assign, ast.AnnAssign, ast.If, ast.Try, ast.Attribute),
)
"""The nodes that may add to a class."""


def words_of(nodes: Sequence[ast.AST]) -> Iterator[str]:
    docstrings = {id(node.value) for node in nodes if isinstance(node, ast.Expr)}
    for node in nodes:
        if type(node) not in NAMED:
            continue
        match node:
            case ast.Constant(value=str(text)) if id(node) not in docstrings:
                yield from re.findall(r"\w+", text)
            case ast.Name(id=name) | ast.Attribute(attr=name) | ast.arg(arg=name):
                yield name
            case ast.keyword(arg=str(name)):
                yield name
            case ast.alias(name=name) | ast.ImportFrom(module=str(name)):
                yield from name.split(".")
            case ast.FunctionDef() | ast.AsyncFunctionDef() | ast.ClassDef():
                yield node.name


def names_bound(node: ast.AST) -> Iterator[str]:
    """What a statement of a module or a class defines, or imports."""
    match node:
        case ast.FunctionDef() | ast.AsyncFunctionDef() | ast.ClassDef():
            yield node.name
        case ast.Import(names=names) | ast.ImportFrom(names=names):
            yield from (alias.asname or alias.name for alias in names)
        case ast.Assign(targets=targets):
            for part in (part for each in targets for part in ast.walk(each)):
                if isinstance(part, ast.Name):
                    yield part.id
        case ast.AnnAssign(target=ast.Name(id=name)):
            yield name
        case ast.If(body=body) | ast.Try(body=body):
            for each in body:
                yield from names_bound(each)


def attributes_of(node: ast.AST) -> Iterator[str]:
    """What a node inside of a class adds to it."""
    yield from names_bound(node)
    match node:
        case ast.Attribute(value=ast.Name(id="self"), ctx=ast.Store()):
            yield node.attr


def inherited(name: str, own: Mapping[str, set[str]], bases: Mapping[str, set[str]]) -> set[str]:
    """What a class has, its bases included. Classes of one name in several files are taken as one,
    so a class may be among its own bases."""
    found, waiting = {name}, [name]
    while waiting:
        more = bases.get(waiting.pop(), set()) - found
        found |= more
        waiting += more
    return {each for one in found for each in own.get(one, ())}


def is_name(span: str) -> bool:
    """Is it in the code: a name, `Class.attribute` or `module.name`?"""
    names = names_of_the_tree()
    parts = span.split(".")
    return all(part in names.words for part in parts) and all(
        has_part(owner, part) for owner, part in pairwise(parts)
    )


def has_part(owner: str, part: str) -> bool:
    names = names_of_the_tree()
    if owner in names.classes:
        return part in names.classes[owner]
    if owner not in names.modules or part in names.modules[owner]:
        return True
    return not files_of_the_tree().isdisjoint({f"{owner}/{part}.py", f"{owner}/{part}/"})
