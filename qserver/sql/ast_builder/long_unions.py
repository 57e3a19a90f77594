"""Long chains of one set operation become trees that are as low as they can be.

    a UNION b UNION c UNION d      (((a UNION b) UNION c) UNION d)     as it is written
                                   ((a UNION b) UNION c) UNION d …     the last one stays alone
    of a hundred queries           ((a … h) ALL (i … p)) UNION z       seven levels, not a hundred
    a EXCEPT b EXCEPT c …          a EXCEPT (b UNION ALL c …)

Such operations may be grouped at will: the rows and their order are the same. Within a UNION,
only the last one has to look for equal rows. Later stages recurse into the tree, and a program is
indented by its depth. A recursive query is what stands behind the last UNION, so that stays where
it was. Short chains are left alone: there the types of columns are found from left to right, two
queries at a time.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Final

from qserver.sql.ast import Query, QueryBody, SetOperation

SHORT_CHAIN: Final = 32
"""So many operations stay as they are written."""


def lowered(body: QueryBody) -> QueryBody:
    """Return a body with its chain of equal operations as a low tree."""
    if not isinstance(body, SetOperation):
        return body
    operands, first = [body.right], body.left
    while isinstance(first, SetOperation) and _is_same(first, body):
        operands.append(first.right)
        first = first.left
    if len(operands) <= SHORT_CHAIN:
        return body
    operands.reverse()
    inner = body if body.kind == "intersect" else replace(body, kind="union", is_all=True)
    if body.kind == "except":
        return _joined(body, first, _low(inner, operands))
    *others, last = operands
    return _joined(body, _low(inner, [first, *others]), last)


def _is_same(operation: SetOperation, other: SetOperation) -> bool:
    return (operation.kind, operation.is_all) == (other.kind, other.is_all)


def _low(pattern: SetOperation, operands: list[QueryBody]) -> QueryBody:
    while len(operands) > 1:
        pairs = [_joined(pattern, *operands[at : at + 2]) for at in range(0, len(operands) - 1, 2)]
        operands = pairs + operands[len(pairs) * 2 :]
    return operands[0]


def _joined(pattern: SetOperation, left: QueryBody, right: QueryBody) -> SetOperation:
    if isinstance(right, SetOperation):
        right = Query(right, position=right.position)
    return SetOperation(pattern.kind, pattern.is_all, left, right, position=left.position)
