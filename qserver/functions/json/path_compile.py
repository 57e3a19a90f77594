"""Compiles an SQL/JSON path to functions, once for all documents."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from decimal import Decimal
from functools import lru_cache
from typing import Final

from qserver.errors import JsonNumberNotFound, SingletonJsonItemRequired, UndefinedObject
from qserver.functions.json import path_methods, path_predicates, path_steps
from qserver.functions.json.path_items import (
    Comparison,
    comparison,
    computed,
    negated,
    starts_with,
)
from qserver.functions.json.path_run import (
    Base,
    Failure,
    Found,
    Item,
    Run,
    Sequence,
    Test,
    Walk,
    is_number,
    last_step,
)
from qserver.values.json_path_input import read_json_path
from qserver.values.json_paths import (
    AnyElement,
    AnyKey,
    Arithmetic,
    Chain,
    Compare,
    Datetime,
    Elements,
    Exists,
    Filter,
    IsUnknown,
    Key,
    Levels,
    LikeRegex,
    Literal,
    Logic,
    Method,
    Node,
    Not,
    Place,
    Sign,
    Step,
    Variable,
)

_KEPT: Final = 256
_KEPT_LENGTH_MAX: Final = 4096
"""Longer paths are not cached."""


@dataclass(frozen=True, slots=True)
class CompiledPath:
    lax: bool
    walk: Walk


def compiled_path(text: str) -> CompiledPath:
    return (_kept_path if len(text) <= _KEPT_LENGTH_MAX else _compiled_path)(text)


def _compiled_path(text: str) -> CompiledPath:
    path = read_json_path(text)
    compiler = _Compiler(path.lax, path.lax, ".keyvalue()" in text)
    return CompiledPath(path.lax, compiler.walk(path.root, last_step))


_kept_path = lru_cache(maxsize=_KEPT)(_compiled_path)


@dataclass(frozen=True, slots=True)
class _Compiler:
    lax: bool
    ignores: bool
    """Whether errors of structure are passed over here."""
    numbers: bool
    """Whether objects are numbered somewhere, by the document that they are in."""

    # --- items -----------------------------------------------------------------------------------

    def walk(self, node: Node, then: Walk) -> Walk:
        """Return what makes the items of a node and goes on with each."""
        match node:
            case Literal(value):
                return _literal(value, then)
            case Variable(name):
                return _variable(name, then)
            case Place("$"):
                return _numbered_root(then) if self.numbers else _root(then)
            case Place("@"):
                return lambda run, item, found: then(run, run.current, found)
            case Place():
                return path_steps.last_position(then)
            case Chain(head, steps):
                return self._chain(head, steps, then)
            case Arithmetic(sign, left, right):
                return _arithmetic(sign, self._unwrapped(left), self._unwrapped(right), then)
            case Sign(sign, operand):
                return _signed(sign, self._unwrapped(operand), then)
        return _truth(self.test(node), then)

    def _chain(self, head: Node, steps: tuple[Step, ...], then: Walk) -> Walk:
        """Compile the last step first: each has the next."""
        compilers = [self]
        for step in steps:
            ignores = compilers[-1].ignores or isinstance(step, Levels)
            compilers.append(replace(self, ignores=ignores))
        for compiler, step in zip(reversed(compilers[:-1]), reversed(steps), strict=True):
            then = compiler.step(step, then)
        return self.walk(head, then)

    def sequence(self, node: Node) -> Sequence:
        walk = self.walk(node, last_step)

        def items(run: Run, item: Item) -> Found:
            found: Found = []
            walk(run, item, found)
            return found

        if isinstance(node, Literal):
            return lambda run, item: [node.value]
        names = self._names(node)
        return path_steps.members(names, items) if names else items

    def _names(self, node: Node) -> tuple[str, ...]:
        """Return the keys of a lax path like `@.a.b`, which has nothing else."""
        match node:
            case Chain(Place("@"), steps) if self.lax:
                names = [step.name for step in steps if isinstance(step, Key)]
                return tuple(names) if len(names) == len(steps) else ()
        return ()

    def _unwrapped(self, node: Node) -> Sequence:
        """Return a sequence in which, in lax mode, arrays are replaced by their elements."""
        sequence = self.sequence(node)
        if not self.lax:
            return sequence

        def items(run: Run, item: Item) -> Found:
            found = sequence(run, item)
            if list not in map(type, found):
                return found
            parts = [each if type(each) is list else [each] for each in found]
            run.spend(sum(map(len, parts)))
            return [each for part in parts for each in part]

        return items

    # --- steps -----------------------------------------------------------------------------------

    def step(self, step: Step, then: Walk) -> Walk:
        match step:
            case Key(name) if self.lax:
                return path_steps.lax_member(name, then)
            case Key(name):
                return path_steps.member(name, then, self.ignores)
            case AnyKey():
                return self._of_objects(path_steps.any_member(then, self.ignores))
            case AnyElement():
                return path_steps.any_element(then, self.lax, self.ignores)
            case Elements(ranges):
                places = [
                    (self._position(first), None if last is None else self._position(last))
                    for first, last in ranges
                ]
                return path_steps.elements(places, then, self.lax, self.ignores)
            case Levels(first, last):
                return path_steps.levels(first, last, then)
            case Method(name):
                return self._method(name, then)
            case Datetime(template):
                return self._of_objects(path_methods.datetime_method(template, then))
            case Filter(predicate):
                return self._of_objects(path_steps.filtered(self.test(predicate), then))

    def _of_objects(self, step: Walk) -> Walk:
        return path_steps.unwrapped(step) if self.lax else step

    def _position(self, node: Node) -> path_steps.Position:
        if isinstance(node, Literal) and type(node.value) in (int, Decimal):
            return path_steps.fixed_position(node.value)
        return path_steps.position(self.sequence(node))

    def _method(self, name: str, then: Walk) -> Walk:
        if name == "type":
            return path_methods.type_method(then)
        if name == "size":
            return path_methods.size_method(then, self.lax, self.ignores)
        if name in path_methods.NUMBER_METHODS:
            return self._of_objects(path_methods.number_method(name, then))
        if name == "double":
            return self._of_objects(path_methods.double_method(then))
        return self._of_objects(path_methods.keyvalue_method(then))

    # --- predicates ------------------------------------------------------------------------------

    def test(self, node: Node) -> Test:
        match node:
            case Compare("starts with", left, right):
                return self._pairs(starts_with, self._tried(left), self.sequence(right))
            case Compare(sign, left, right):
                return self._pairs(comparison(sign), self._tried(left), self._tried(right))
            case LikeRegex(operand, pattern, flags):
                matches = path_predicates.like_regex(pattern, flags)
                return self._pairs(matches, self._tried(operand), lambda run, item: [None])
            case Logic("&&", parts):
                return path_predicates.all_of(list(map(self.test, parts)))
            case Logic(_, parts):
                return path_predicates.any_of(list(map(self.test, parts)))
            case Not(part):
                return path_predicates.negation(self.test(part))
            case IsUnknown(part):
                return path_predicates.is_unknown(self.test(part))
            case Exists(operand):
                return path_predicates.exists(self.walk(operand, last_step), self.lax)
        raise AssertionError(f"the parser makes no predicate of {node}")

    def _tried(self, node: Node) -> path_predicates.Attempt:
        sequence = self._unwrapped(node)
        cannot_fail = isinstance(node, Literal | Place) or self._names(node)
        return sequence if cannot_fail else path_predicates.attempt(sequence)

    def _pairs(
        self, compare: Comparison, left: path_predicates.Attempt, right: path_predicates.Attempt
    ) -> Test:
        return path_predicates.of_pairs(compare, left, right, self.lax)


# --- what a path begins with ---------------------------------------------------------------------


def _literal(value: object, then: Walk) -> Walk:
    return lambda run, item, found: then(run, value, found)


def _root(then: Walk) -> Walk:
    return lambda run, item, found: then(run, run.root, found)


def _numbered_root(then: Walk) -> Walk:
    def walk(run: Run, item: Item, found: Found | None) -> bool:
        base, run.base = run.base, Base(run.root, 0)
        some = then(run, run.root, found)
        run.base = base
        return some

    return walk


def _variable(name: str, then: Walk) -> Walk:
    def walk(run: Run, item: Item, found: Found | None) -> bool:
        if run.variables is None:
            return then(run, None, found)
        if name not in run.variables:
            raise UndefinedObject(f'could not find jsonpath variable "{name}"')
        base, run.base = run.base, Base(run.variables, 1)
        some = then(run, run.variables[name], found)
        run.base = base
        return some

    return walk


def _truth(test: Test, then: Walk) -> Walk:
    """A predicate as an item; unknown is null."""
    return lambda run, item, found: then(run, test(run, item), found)


# --- operators -----------------------------------------------------------------------------------


def _arithmetic(sign: str, left: Sequence, right: Sequence, then: Walk) -> Walk:
    def walk(run: Run, item: Item, found: Found | None) -> bool:
        ones, others = left(run, item), right(run, item)
        one = _single_number("left", sign, ones)
        return then(run, computed(run, sign, one, _single_number("right", sign, others)), found)

    return walk


def _single_number(side: str, sign: str, items: Found) -> Item:
    if len(items) != 1 or not is_number(items[0]):
        message = f"{side} operand of jsonpath operator {sign} is not a single numeric value"
        raise Failure(SingletonJsonItemRequired(message))
    return items[0]


def _signed(sign: str, operand: Sequence, then: Walk) -> Walk:
    convert: Callable[[Item], Item] = negated if sign == "-" else lambda value: value

    def walk(run: Run, item: Item, found: Found | None) -> bool:
        items = operand(run, item)
        if then is last_step and found is None:
            return any(map(is_number, items))
        some = False
        for each in items:
            if not is_number(each):
                message = f"operand of unary jsonpath operator {sign} is not a numeric value"
                raise Failure(JsonNumberNotFound(message))
            if then(run, convert(each), found):
                if found is None:
                    return True
                some = True
        return some

    return walk
