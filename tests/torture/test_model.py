"""The comparison that the torture relies on finds each kind of loss, and no loss where none is."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from tests.torture.model import Look, Model, Presence


def written() -> tuple[Model, Look]:
    """Two transfers, a batch and a ticket, all acknowledged; and what must be seen of them."""
    model = Model(accounts=2)
    for source, target, amount in [(0, 1, 10), (1, 0, 3)]:
        number = model.begin("transfer", ((source, target, amount),))
        model.transfers[number] = (source, target, amount)
        model.acknowledge(number)
    model.acknowledge(model.begin("batch", ((0, "a"), (1, "b"), (1, "b"))))
    ticket = model.begin("ticket", (("ticket",),))
    model.give(1)
    model.tickets[ticket] = 1
    model.acknowledge(ticket)
    rows = {number: write.rows for number, write in model.writes.items()}
    return model, Look(rows, {0: -7, 1: 7}, {ticket: 1})


def test_what_was_acknowledged_and_is_there_is_no_problem() -> None:
    model, look = written()
    model.compare(look)
    assert model.problems == []


@pytest.mark.parametrize(
    ("change", "found"),
    [
        (lambda look: look.rows.pop(3), "batch 3 was acknowledged and is gone"),
        (lambda look: look.rows.update({3: look.rows[3][:2]}), "batch 3 is damaged"),
        (lambda look: look.rows.update({3: look.rows[3] * 2}), "batch 3 is damaged"),
        (lambda look: look.rows.update({9: ((1,),)}), "nobody has made"),
        (lambda look: look.rows.pop(1), "balances are"),
        (lambda look: look.balances.update({0: -8}), "balances are"),
        (lambda look: look.tickets.update({4: 2}), "its client was told 1"),
        (lambda look: look.tickets.update({5: 1}), "has given 1 twice"),
    ],
)
def test_each_kind_of_loss_is_found(change: Callable[[Look], object], found: str) -> None:
    model, look = written()
    change(look)
    model.compare(look)
    assert any(found in problem for problem in model.problems)


@pytest.mark.parametrize("is_there", [True, False])
def test_a_write_without_an_answer_may_be_there_or_not_but_then_stays_so(is_there: bool) -> None:
    model, look = written()
    number = model.begin("batch", ((0, "c"),))
    with_it = Look({**look.rows, number: ((0, "c"),)}, look.balances, look.tickets)
    first, second = (with_it, look) if is_there else (look, with_it)
    model.compare(first)
    assert model.problems == []
    assert (model.found_applied, model.found_not_applied) == (is_there, not is_there)
    model.compare(second)
    assert len(model.problems) == 1


def test_a_write_that_somebody_has_seen_must_stay() -> None:
    model, look = written()
    number = model.begin("batch", ((0, "c"),))
    model.see(number)
    model.compare(look)
    assert model.problems == [f"batch {number} was acknowledged and is gone"]


def test_a_removal_that_was_acknowledged_must_stay() -> None:
    model, look = written()
    model.begin_removal(3)
    model.acknowledge(3, Presence.ABSENT)
    model.compare(look)
    assert model.problems == ["batch 3 is there, but was refused or removed"]


@pytest.mark.parametrize("was_applied", [True, False])
def test_a_sweep_without_an_answer_is_there_or_not(was_applied: bool) -> None:
    model, look = written()
    model.unanswered_sweep = (look, frozenset({"transfer", "batch", "ticket"}))
    model.compare(Look({}, look.balances, {}) if was_applied else look)
    assert model.problems == []
