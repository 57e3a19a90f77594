"""One comparison: a query, a relation that its answers must satisfy, and the way to get them.

A `Case` is all that is needed to do it again on an empty database, and so what is shrunk.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from random import Random

from qserver.errors import QserverError
from tests.differential.metamorphic.answers import INTERNAL, Answer, exception_for, in_order
from tests.differential.metamorphic.plain import PART
from tests.differential.metamorphic.relations import RELATIONS, Subject
from tests.differential.metamorphic.replicas import ReplicasDiffer, opened_replicas
from tests.differential.metamorphic.ways import Way, Ways

ORDINARY = "ordinary"
SAME = "as it is"
CHANGE = "the same rows are changed in all replicas"


@dataclass(frozen=True, slots=True)
class Question:
    """What is asked: a query, with what a relation may need besides, and how."""

    text: str
    predicate: str
    number: int
    relation: str
    way: str
    inside: str = ""
    ordered_by: tuple[int, ...] = ()

    def __str__(self) -> str:
        lines = [f"query:     {self.text}", f"relation:  {self.relation}", f"way:       {self.way}"]
        if self.predicate != "true":
            lines.insert(1, f"predicate: {self.predicate}")
        return "\n".join(lines)


@dataclass(frozen=True, slots=True)
class Case:
    """A question about the rows that some statements make; `seed` draws the other keys."""

    definitions: tuple[str, ...]
    changes: tuple[str, ...]
    question: Question
    seed: int

    def script(self) -> str:
        return "\n".join(f"{each};" for each in (*self.definitions, *self.changes))


@dataclass(frozen=True, slots=True)
class Outcome:
    """What a question came to: it holds, by an exception perhaps, or it does not."""

    difference: str = ""
    kind: str = ""
    """Of the difference: the code of an error that was raised, or what is not the same."""
    exception: str | None = None
    texts: int = 1


HOLDS = Outcome()


async def ask(ways: Ways, question: Question, base: Answer | None = None) -> Outcome:
    """Whether the relation holds; `base` is the query's ordinary answer, if it is known."""
    if base is None:
        base = await ways.ordinary([question.text])
    way = ways.ordinary if question.way == ORDINARY else ways.by_name[question.way]
    if base.error is not None or question.relation == SAME:
        return await _same(way, question, base)
    relation = RELATIONS[question.relation]
    subject = Subject(
        question.text,
        base.types,
        base.rows,
        question.predicate,
        question.number,
        question.inside if PART in question.text else "",
    )
    if not base.types or not relation.fits(subject):
        return await _same(way, question, base)
    answers: list[Answer] = []
    for script in relation.scripts(subject):
        answer = await way(script)
        if answer.error is not None:
            exception = exception_for(base, answer, question.way)
            if exception is not None:
                return Outcome(exception=exception, texts=len(answers) + 1)
            return Outcome(f"{'; '.join(script)}\n  raised {answer}", answer.error)
        answers.append(answer)
    if relation.holds(subject, [answer.rows for answer in answers]):
        return Outcome(texts=len(answers))
    scripts = ["; ".join(script) for script in relation.scripts(subject)]
    return Outcome(_told([question.text, *scripts], [base, *answers]), "rows")


async def _same(way: Way, question: Question, base: Answer) -> Outcome:
    """The text itself gives the same rows, types and errors in another way."""
    answer = await way([question.text])
    if answer.error is None and base.error is None:
        if answer.types != base.types:
            types = [", ".join(map(str, each.types)) for each in (base, answer)]
            return Outcome(f"types differ: {types[0]}\n        and: {types[1]}", "types")
        subject = Subject(question.text, base.types, base.rows, "true", 0)
        if RELATIONS[SAME].holds(subject, [answer.rows]):
            if _in_same_order(question, base, answer):
                return HOLDS
            return Outcome(_told(["ordinary", question.way], [base, answer]), "order")
    elif answer.error == base.error != INTERNAL:
        return HOLDS
    else:
        exception = exception_for(base, answer, question.way)
        if exception is not None:
            return Outcome(exception=exception)
    kind = "rows" if base.error == answer.error else f"{base.error} {answer.error}"
    return Outcome(_told(["ordinary", question.way], [base, answer]), kind)


def _in_same_order(question: Question, base: Answer, answer: Answer) -> bool:
    """Rows that are equal in all columns of ORDER BY may change places.

    A query that was cut short may have lost such a column, and then has no order to compare.
    """
    if any(at >= len(base.types) for at in question.ordered_by):
        return True
    first, second = (
        in_order([tuple(row[at] for at in question.ordered_by) for row in each.rows])
        for each in (base, answer)
    )
    return first == second


def _told(titles: Sequence[str], answers: Sequence[Answer]) -> str:
    return "\n".join(f"{title}\n  {answer}" for title, answer in zip(titles, answers, strict=True))


def case_to_line(case: Case) -> str:
    """As one line of JSON, to be kept."""
    return json.dumps(asdict(case), ensure_ascii=False)


def case_from_line(line: str) -> Case:
    plain = json.loads(line)
    question = plain["question"]
    question["ordered_by"] = tuple(question["ordered_by"])
    return Case(
        tuple(plain["definitions"]), tuple(plain["changes"]), Question(**question), plain["seed"]
    )


async def outcome_of(case: Case) -> Outcome:
    """Do it again from nothing."""
    async with opened_replicas(Random(case.seed)) as replicas:
        try:
            await replicas.define(case.definitions)
            for sql in case.changes:
                await replicas.change(sql)
            if case.question.relation == CHANGE:
                await replicas.change(case.question.text)
                return HOLDS
        except QserverError:  # what is left of the definitions makes no sense
            return HOLDS
        except ReplicasDiffer as differ:
            return Outcome(str(differ) if case.question.relation == CHANGE else "", "rows")
        return await ask(Ways(replicas), case.question)
    raise AssertionError("never reached")
