"""The generator repeats itself for a seed, and leaves nothing out."""

from __future__ import annotations

from collections import Counter
from random import Random

import pytest

from tests.differential.programs import Program
from tests.differential.queries import Queries
from tests.differential.schema import random_schema
from tests.differential.templates import all_names


def texts(seed: int) -> list[str]:
    texts = []
    for drawn in Program(seed).steps():
        texts.append(drawn.step.sql)
        drawn.then()
    return texts


def test_a_seed_draws_the_same_program_again() -> None:
    assert texts(5) == texts(5)
    assert texts(5) != texts(6)


@pytest.mark.long
def test_every_template_is_drawn_sooner_or_later() -> None:
    reached: Counter[str] = Counter()
    for seed in range(120):
        random = Random(seed)
        queries = Queries(random, random_schema(random))
        for _ in range(60):
            queries.select()
        reached.update(queries.reached)
        if all_names() <= set(reached):
            break
    assert not all_names() - set(reached)


def test_a_limit_stands_only_where_the_order_is_total() -> None:
    limited = 0
    for seed in range(40):
        random = Random(seed)
        queries = Queries(random, random_schema(random))
        for _ in range(20):
            query = queries.select()
            if query.limited:
                limited += 1
                assert query.total and query.ordered_by
    assert limited > 20
