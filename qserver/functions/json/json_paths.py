"""jsonb_path_exists, jsonb_path_match, jsonb_path_query …, and the operators @? and @@.

What a path takes is known only afterwards, so each call charges the context with its steps. A call
on a short document is direct unless its path can multiply: see `path_length`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import lru_cache
from typing import Any, Final

from qserver.errors import InvalidParameterValue, SingletonJsonItemRequired
from qserver.functions.context import Context
from qserver.functions.costs import BYTES_SMALL, json_cost, refuse_size
from qserver.functions.json.path_compile import CompiledPath, compiled_path
from qserver.functions.json.path_items import jsonb_of_item
from qserver.functions.json.path_run import Failure, Found, Item, Run
from qserver.functions.registry import Function, TableFunction
from qserver.values.jsonb import Jsonb, Structure, read_once
from qserver.values.types import BOOLEAN, JSONB, JSONPATH, SqlType

_NO_VARIABLES: Final[dict[str, Structure]] = {}


def _variables(given: Jsonb | None) -> dict[str, Structure]:
    if given is None:
        return _NO_VARIABLES
    structure = given.value
    if not isinstance(structure, dict):
        raise InvalidParameterValue(
            '"vars" argument is not an object',
            detail='Jsonpath parameters should be encoded as key-value pairs of "vars" object.',
        )
    return structure


def _items(
    context: Context, path: CompiledPath, run: Run, silent: bool, found: Found | None
) -> bool | None:
    """Run a path; None if it failed and is silent. `found` has what was found until then."""
    try:
        return path.walk(run, run.root, found)
    except Failure as failure:
        if silent:
            return None
        raise failure.error from None
    finally:
        context.work += run.work


def _exists(context: Context, path: CompiledPath, run: Run, silent: bool) -> bool | None:
    """In strict mode all items are made, to see whether one fails."""
    found: Found | None = None if path.lax else []
    some = _items(context, path, run, silent, found)
    return some if found is None or some is None else bool(found)


def _match(context: Context, path: CompiledPath, run: Run, silent: bool) -> bool | None:
    found: Found = []
    _items(context, path, run, silent, found)
    if len(found) == 1 and (found[0] is None or type(found[0]) is bool):
        return found[0]
    if silent:
        return None
    raise SingletonJsonItemRequired("single boolean result is expected")


def _all(context: Context, path: CompiledPath, run: Run, silent: bool) -> Found:
    found: Found = []
    _items(context, path, run, silent, found)
    return found


def _array(context: Context, path: CompiledPath, run: Run, silent: bool) -> Jsonb:
    printed = _Printed(context)
    texts: list[str] = []
    for item in _all(context, path, run, silent):
        texts.append(printed.text_of(item))
        if printed.size > context.value_bytes_most:
            raise refuse_size(printed.size, context.value_bytes_most)
    return Jsonb(f"[{', '.join(texts)}]")


def _first(context: Context, path: CompiledPath, run: Run, silent: bool) -> Jsonb | None:
    found = _all(context, path, run, silent)
    return Jsonb(_Printed(context).text_of(found[0])) if found else None


def _rows(
    context: Context, path: CompiledPath, run: Run, silent: bool
) -> Iterator[tuple[Jsonb, ...]]:
    found = _all(context, path, run, silent)
    printed = _Printed(context)
    return ((Jsonb(printed.text_of(each)),) for each in found)


class _Printed:
    """Prints what was found, each part of the document once, and charges for it."""

    def __init__(self, context: Context) -> None:
        self._context = context
        self._texts: dict[int, str] = {}
        self.size = 0

    def text_of(self, item: Item) -> str:
        text = self._texts.get(id(item))
        if text is None:
            text = jsonb_of_item(item).text
            if len(text) > BYTES_SMALL:
                self._texts[id(item)] = text
                self._context.work += json_cost(text)
        self.size += len(text)
        return text


Answer = Callable[[Context, CompiledPath, Run, bool], Any]


def _function(answer: Answer, uses_zone: bool) -> Callable[..., Any]:
    def call(
        context: Context, target: Jsonb, path: str, given: Jsonb | None = None, silent: bool = False
    ) -> Any:
        run = Run(target.value, _variables(given), uses_zone, not silent)
        return answer(context, compiled_path(path), run, silent)

    return call


def _operator(answer: Answer) -> Callable[[Context, Jsonb, str], Any]:
    """An operator is silent, and each variable is null."""

    def call(context: Context, target: Jsonb, path: str) -> Any:
        run = Run(read_once(target.text), None, False, False)
        return answer(context, compiled_path(path), run, True)

    return call


# --- costs ---------------------------------------------------------------------------------------

_MULTIPLIES: Final = ("**", ",", "keyvalue")
"""What paths have in them that may visit parts of a document again and again; so do filters in
filters."""


@lru_cache(maxsize=1024)
def _is_direct(path: str) -> bool:
    multiplies = path.count("?(") > 1 or any(mark in path for mark in _MULTIPLIES)
    return len(path) < BYTES_SMALL and not multiplies


def path_length(target: Jsonb, path: str) -> int:
    """Return the length by which a call counts as short: no path that multiplies is short."""
    return 4 * len(target.text) if _is_direct(path) else BYTES_SMALL


def path_cost(target: Any, path: Any, *others: Any) -> int:
    """Parsing the document and the variables; a long path is not kept, and is compiled again."""
    return 1 + 2 * json_cost(target, *others) + (0 if path is None else len(path) * 4)


# --- the tables ----------------------------------------------------------------------------------

_SCALAR: Final[tuple[tuple[str, SqlType, Answer], ...]] = (
    ("exists", BOOLEAN, _exists),
    ("match", BOOLEAN, _match),
    ("query_array", JSONB, _array),
    ("query_first", JSONB, _first),
)
_PARAMETERS: Final = (JSONB, JSONPATH, JSONB, BOOLEAN)
_NAMES: Final = {"path_length": path_length}


def _made(name: str, parameters: tuple[SqlType, ...], returns: SqlType, call: Any) -> Function:
    return Function(
        name,
        parameters,
        returns,
        call,
        gives_null=returns == BOOLEAN or name.startswith("jsonb_path_query_first"),
        cost=path_cost,
        explodes=True,
        length="path_length({0}, {1})",
        names=_NAMES,
        charges=True,
        symbol=name if name.startswith("@") else None,
    )


def _functions() -> Iterator[Function]:
    for name, returns, answer in _SCALAR:
        for suffix in ("", "_tz"):
            call = _function(answer, bool(suffix))
            for count in (2, 3, 4):
                yield _made(f"jsonb_path_{name}{suffix}", _PARAMETERS[:count], returns, call)
    for name, answer in (("exists", _exists), ("match", _match)):
        yield _made(f"jsonb_path_{name}_opr", _PARAMETERS[:2], BOOLEAN, _operator(answer))


def _table_functions() -> Iterator[TableFunction]:
    for name in ("jsonb_path_query", "jsonb_path_query_tz"):
        call = _function(_rows, name.endswith("_tz"))
        for count in (2, 3, 4):
            columns = ((name, JSONB),)
            yield TableFunction(
                name, _PARAMETERS[:count], columns, call, cost=path_cost, charges=True
            )


OPERATORS: Final = (
    _made("@?", _PARAMETERS[:2], BOOLEAN, _operator(_exists)),
    _made("@@", _PARAMETERS[:2], BOOLEAN, _operator(_match)),
)
FUNCTIONS: Final = tuple(_functions())
TABLE_FUNCTIONS: Final = tuple(_table_functions())
