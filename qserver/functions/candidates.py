"""Selects among candidates for a call by PostgreSQL's rules for operators and functions.

    all of that name ──► those that the arguments reach by implicit casts
                     ──► those with the most exact matches
                     ──► those with the most exact or preferred types
                     ──► for each unknown literal: one category, text if any candidate takes text
                     ──► unknown literals as the one type that all other arguments have

Each step narrows the list, until one is left. None left, or several at the end, is an error of
`resolve`. See "Type Conversion" in PostgreSQL's manual; the steps and their order are those of its
`func_select_candidate`, because programs depend on every detail of them.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TypeVar

from qserver.functions.placeholders import concrete
from qserver.functions.signatures import PLACEHOLDERS
from qserver.functions.type_categories import STRING, category, converts, is_preferred
from qserver.values.types import UNKNOWN, SqlType

T = TypeVar("T")
Candidate = tuple[tuple[SqlType, ...], T]


def accepts(parameters: Sequence[SqlType], arguments: Sequence[SqlType]) -> bool:
    """Tell whether implicit casts convert the arguments to the parameters."""
    for parameter, argument in zip(parameters, arguments, strict=True):
        if parameter.kind not in PLACEHOLDERS and not converts(argument, parameter):
            return False
    return concrete(parameters, arguments) is not None


def narrow(candidates: list[Candidate[T]], arguments: Sequence[SqlType]) -> list[Candidate[T]]:
    """Narrow candidates that all accept the arguments: to one, if the call is unambiguous."""
    known = [at for at, argument in enumerate(arguments) if argument != UNKNOWN]
    unknown = [at for at, argument in enumerate(arguments) if argument == UNKNOWN]

    def exact(parameters: tuple[SqlType, ...], at: int) -> bool:
        return parameters[at] == arguments[at]

    def preferred(parameters: tuple[SqlType, ...], at: int) -> bool:
        wanted = category(arguments[at])
        return is_preferred(parameters[at]) and category(parameters[at]) == wanted

    candidates = _most(candidates, lambda each: sum(exact(each, at) for at in known))
    if len(candidates) > 1:
        candidates = _most(
            candidates, lambda each: sum(exact(each, at) or preferred(each, at) for at in known)
        )
    if len(candidates) > 1 and unknown:
        candidates = _by_category(candidates, unknown)
    if len(candidates) > 1 and unknown and len({arguments[at] for at in known}) == 1:
        assumed = [arguments[known[0]]] * len(arguments)
        fitting = [each for each in candidates if accepts(each[0], assumed)]
        candidates = fitting if len(fitting) == 1 else candidates
    return candidates


def _most(
    candidates: list[Candidate[T]], score: Callable[[tuple[SqlType, ...]], int]
) -> list[Candidate[T]]:
    scores = [score(parameters) for parameters, _ in candidates]
    best = max(scores)
    return [each for each, points in zip(candidates, scores, strict=True) if points == best]


def _by_category(candidates: list[Candidate[T]], unknown: list[int]) -> list[Candidate[T]]:
    """Return the candidates that take each unknown literal as its required category."""
    wanted: dict[int, tuple[str, bool]] = {}
    for at in unknown:
        taken = [parameters[at] for parameters, _ in candidates]
        names = [category(each) for each in taken]
        if len(set(names)) > 1 and STRING not in names:
            return candidates
        name = STRING if STRING in names else names[0]
        wanted[at] = name, any(category(each) == name and is_preferred(each) for each in taken)
    kept = [
        each
        for each in candidates
        if all(
            category(each[0][at]) == name and (is_preferred(each[0][at]) or not preferred)
            for at, (name, preferred) in wanted.items()
        )
    ]
    return kept or candidates
