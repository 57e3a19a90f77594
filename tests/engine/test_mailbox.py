"""Mailboxes keep order, give all that waits at once, and are bounded; replies count once."""

from __future__ import annotations

from typing import Final

import pytest
import trio
from hypothesis import given, settings
from hypothesis import strategies as st
from trio.testing import wait_all_tasks_blocked

from qserver.engine.mailbox import Mailbox, MailboxStatistics, Reply
from qserver.errors import Applied, TooManyRequests
from tests.sampling import examples


async def test_a_reader_takes_all_that_waits_in_order() -> None:
    mailbox = Mailbox[int]("reader", 10)
    for number in range(5):
        mailbox.put_nowait(number)
    assert await mailbox.take(most=100) == [0, 1, 2, 3, 4]


async def test_a_reader_takes_no_more_than_it_asked_for() -> None:
    mailbox = Mailbox[int]("reader", 10)
    for number in range(5):
        mailbox.put_nowait(number)
    assert await mailbox.take(most=2) == [0, 1]
    assert await mailbox.take(most=1) == [2]
    assert await mailbox.take(most=9) == [3, 4]


async def test_a_reader_waits_for_the_first_message_only() -> None:
    mailbox = Mailbox[str]("reader", 10)
    taken: list[list[str]] = []

    async def read() -> None:
        taken.append(await mailbox.take(most=10))

    async with trio.open_nursery() as nursery:
        nursery.start_soon(read)
        await wait_all_tasks_blocked()
        assert taken == []
        mailbox.put_nowait("first")
    assert taken == [["first"]]


async def test_a_full_mailbox_refuses_and_the_error_says_whose_it_is() -> None:
    mailbox = Mailbox[int]("coordinator", 2)
    mailbox.put_nowait(1)
    mailbox.put_nowait(2)
    with pytest.raises(TooManyRequests) as caught:
        mailbox.put_nowait(3)
    assert str(caught.value) == "2 messages wait at the coordinator already"
    assert caught.value.hint == "Try again in a moment, or send fewer requests at once."
    assert caught.value.retryable
    assert caught.value.applied is Applied.NO
    assert await mailbox.take(most=9) == [1, 2]


async def test_who_prefers_to_wait_waits_until_there_is_room_and_keeps_order() -> None:
    mailbox = Mailbox[int]("log", 1)
    mailbox.put_nowait(1)
    done: list[int] = []

    async def write() -> None:
        for number in (2, 3):
            await mailbox.put(number)
            done.append(number)

    async with trio.open_nursery() as nursery:
        nursery.start_soon(write)
        await wait_all_tasks_blocked()
        assert done == []
        assert await mailbox.take(most=1) == [1]
        await wait_all_tasks_blocked()
        assert done == [2]
        assert await mailbox.take(most=1) == [2]
    assert await mailbox.take(most=1) == [3]


async def test_a_reader_that_is_cancelled_loses_no_message() -> None:
    mailbox = Mailbox[int]("reader", 2)
    with trio.CancelScope() as scope:
        scope.cancel()
        await mailbox.take(most=2)
    assert scope.cancelled_caught
    mailbox.put_nowait(1)
    assert await mailbox.take(most=2) == [1]


async def test_who_is_cancelled_while_it_waits_for_room_has_sent_nothing() -> None:
    mailbox = Mailbox[int]("log", 1)
    mailbox.put_nowait(1)
    with trio.move_on_after(0) as scope:
        await mailbox.put(2)
    assert scope.cancelled_caught
    assert mailbox.take_nowait(most=9) == [1]
    assert mailbox.take_nowait(most=9) == []
    mailbox.put_nowait(3)
    assert await mailbox.take(most=9) == [3]


async def test_who_finds_room_goes_on_at_once() -> None:
    mailbox = Mailbox[int]("log", 1)
    with trio.CancelScope() as scope:
        scope.cancel()
        await mailbox.put(1)  # a place where tasks change would find that it is cancelled
    assert not scope.cancelled_caught
    assert mailbox.take_nowait(most=9) == [1]


async def test_what_a_sender_waited_to_send_is_found_before_that_sender_goes_on() -> None:
    mailbox = Mailbox[int]("log", 1)
    mailbox.put_nowait(1)
    async with trio.open_nursery() as nursery:
        nursery.start_soon(mailbox.put, 2)
        await wait_all_tasks_blocked()
        assert await mailbox.take(most=1) == [1]
        assert await mailbox.take(most=1) == [2]
    mailbox.put_nowait(3)
    assert mailbox.take_nowait(most=9) == [3]
    assert mailbox.take_nowait(most=9) == []


STEPS: Final = st.lists(
    st.one_of(
        st.just(("put", 0)),
        st.just(("put_nowait", 0)),
        st.tuples(st.sampled_from(["take", "take_nowait"]), st.integers(1, 4)),
        st.just(("let others run", 0)),
    ),
    max_size=40,
)


@settings(max_examples=examples(60), deadline=None)
@given(steps=STEPS, capacity=st.integers(1, 3))
async def test_whatever_is_put_and_taken_nothing_is_lost_or_doubled(
    steps: list[tuple[str, int]], capacity: int
) -> None:
    mailbox = Mailbox[int]("reader", capacity)
    sent: list[int] = []
    taken: list[int] = []
    number = 0
    async with trio.open_nursery() as nursery:
        for step, most in steps:
            number += 1
            if step == "put":
                nursery.start_soon(mailbox.put, number)
                sent.append(number)
            elif step == "put_nowait":
                try:
                    mailbox.put_nowait(number)
                except TooManyRequests:
                    assert mailbox.statistics().waiting == capacity
                else:
                    sent.append(number)
            elif step == "let others run":
                await wait_all_tasks_blocked()
            elif step == "take_nowait" or not mailbox.statistics().waiting:
                taken += mailbox.take_nowait(most)
            else:
                found = await mailbox.take(most)
                assert 1 <= len(found) <= most
                taken += found
        while len(taken) < len(sent):
            taken += await mailbox.take(9)
    assert sorted(taken) == sorted(sent)
    assert mailbox.take_nowait(9) == []
    assert (mailbox.statistics().taken, mailbox.statistics().waiting) == (len(sent), 0)


async def test_statistics_tell_what_waits_what_waited_most_and_what_was_taken() -> None:
    mailbox = Mailbox[int]("shard 3", 8)
    for number in range(5):
        mailbox.put_nowait(number)
    await mailbox.take(most=4)
    assert mailbox.statistics() == MailboxStatistics(
        name="shard 3", waiting=1, waiting_most=4, capacity=8, taken=4
    )
    await mailbox.take(most=4)
    assert mailbox.statistics() == MailboxStatistics("shard 3", 0, 4, 8, 5)


async def test_a_mailbox_reads_as_a_sentence() -> None:
    mailbox = Mailbox[int]("shard 3", 8)
    mailbox.put_nowait(1)
    assert repr(mailbox) == "the mailbox of the shard 3, 1 waiting"


async def test_the_first_answer_counts_and_a_late_one_does_no_harm() -> None:
    reply = Reply[str]()
    reply.put("first")
    reply.put("second")
    reply.fail(ValueError("late"))
    assert await reply.wait() == "first"
    assert await reply.wait() == "first"


async def test_a_failed_reply_raises_and_stays_failed() -> None:
    reply = Reply[str]()
    reply.fail(ValueError("the first"))
    reply.put("late")
    reply.fail(ValueError("the second"))
    for _ in range(2):
        with pytest.raises(ValueError, match="the first"):
            await reply.wait()


async def test_nothing_is_an_answer_too() -> None:
    reply = Reply[int | None]()
    answered: list[int | None] = []

    async def wait() -> None:
        answered.append(await reply.wait())

    async with trio.open_nursery() as nursery:
        nursery.start_soon(wait)
        await wait_all_tasks_blocked()
        assert answered == []
        reply.put(None)
    assert answered == [None]


async def test_a_callback_is_called_once_with_the_reply() -> None:
    answers: list[Reply[str]] = []
    answered, failed = Reply[str](), Reply[str]()
    for reply in (answered, failed):
        reply.then(answers.append)
    assert answers == []
    answered.put("first")
    answered.put("second")
    failed.fail(ValueError("the first"))
    failed.put("late")
    assert answers == [answered, failed]
    assert (answered.content, answered.error) == ("first", None)
    assert (failed.content, str(failed.error)) == (None, "the first")
