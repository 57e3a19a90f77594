"""Three nodes and whatever befalls them: one at a time shows a family, and in the end one does."""

from __future__ import annotations

from collections.abc import Sequence

import pytest
import trio
from hypothesis import given, settings
from hypothesis import strategies as st
from trio.testing import MockClock

from qserver.errors import QserverError
from qserver.replication.port import Refused, Unanswered
from tests.control.nodes.members import LEASE, Cluster, Member, in_time
from tests.sampling import examples

NAMES = ("one", "two", "three")
FAMILIES = ("family 1", "family 2", "control")
PAIRS = tuple(frozenset(each) for each in (NAMES[:2], NAMES[1:], (NAMES[0], NAMES[2])))

STEPS = st.one_of(
    st.tuples(st.just("wait"), st.floats(0.1, 2 * LEASE)),
    st.tuples(st.just("cut off"), st.sampled_from(NAMES)),
    st.tuples(st.just("back"), st.sampled_from(NAMES)),
    st.tuples(st.just("apart"), st.sampled_from(PAIRS)),
    st.tuples(st.just("together"), st.sampled_from(PAIRS)),
    st.tuples(st.just("restart"), st.sampled_from(NAMES)),
    st.tuples(st.just("dies"), st.sampled_from(NAMES)),
    st.tuples(st.just("lose answers"), st.sampled_from(NAMES)),
    st.tuples(st.just("late writes"), st.sampled_from(NAMES)),
    st.tuples(st.just("move"), st.sampled_from(FAMILIES), st.sampled_from(NAMES)),
    st.tuples(st.just("leave"), st.sampled_from(NAMES)),
)


class Model:
    def __init__(self, nursery: trio.Nursery) -> None:
        self.cluster = Cluster()
        self.nursery = nursery
        self.members: dict[str, Member] = {}

    def start(self, name: str) -> None:
        """Start a node in its folder, whose last process has ended."""
        if name in self.members:
            self.members[name].die()
        self.members[name] = self.cluster.member(name)
        self.nursery.start_soon(self._live, self.members[name])

    async def _live(self, member: Member) -> None:
        while member.is_alive:
            try:
                await member.membership.begin()
                break
            except QserverError:
                await trio.sleep(0.1)
        if not member.is_alive:
            return
        self.cluster.members[member.number] = member
        async with trio.open_nursery() as nursery:
            for family in FAMILIES:
                nursery.start_soon(self._want, member, family)
            await member.run()
            nursery.cancel_scope.cancel()

    async def _want(self, member: Member, family: str) -> None:
        """Join, and have a family whenever this node may."""
        while True:
            try:
                await member.node.join()
                if member.membership.may_own(family) and family not in member.held.families():
                    await member.held.have(family, member)
            except QserverError:
                pass
            await trio.sleep(0.1)

    async def watch(self) -> None:
        while True:
            self.check()
            await trio.sleep(0.02)

    def check(self) -> None:
        for family in FAMILIES:
            shown = [
                name
                for name, each in self.members.items()
                if each.is_alive and each.held.shows(family)
            ]
            assert len(shown) < 2, f"{family} is shown by {shown}"

    async def step(self, step: Sequence[object]) -> None:
        match step:
            case ("wait", float(seconds)):
                await trio.sleep(seconds)
            case ("cut off", str(name)):
                self.members[name].way.is_cut = True
            case ("back", str(name)):
                self.members[name].way.is_cut = False
            case ("apart", frozenset() as pair):
                self.cluster.cuts.add(pair)
            case ("together", frozenset() as pair):
                self.cluster.cuts.discard(pair)
            case ("restart", str(name)):
                self.start(name)
            case ("dies", str(name)):
                self.members[name].die()
            case ("lose answers", str(name)):
                self.members[name].way.lose_answer = lambda key: True
            case ("late writes", str(name)):
                self.members[name].way.before_write = _late
            case ("move", str(family), str(name)):
                await self._try(self.members[NAMES[0]].membership.move(family, name))
            case ("leave", str(name)):
                self.nursery.start_soon(self._leave, self.members[name])

    async def _leave(self, member: Member) -> None:
        if member.is_alive and hasattr(member.membership, "facts"):
            await self._try(member.node.leave())

    async def _try(self, call: object) -> None:
        try:
            with trio.move_on_after(LEASE):
                await call  # type: ignore[misc]
        except (QserverError, Refused, Unanswered, AttributeError):
            pass

    async def heal(self) -> None:
        self.cluster.cuts.clear()
        for name, each in list(self.members.items()):
            each.way.is_cut = False
            each.way.lose_answer = lambda key: False
            each.way.before_write = _soon
            if each.node.is_leaving or not each.is_alive:
                self.start(name)
        await in_time(lambda: all(map(self._is_served, FAMILIES)))

    def _is_served(self, family: str) -> bool:
        return any(each.is_alive and each.held.shows(family) for each in self.members.values())


async def _late(key: str) -> None:
    await trio.sleep(LEASE / 2)


async def _soon(key: str) -> None:
    await trio.lowlevel.checkpoint()


@pytest.mark.long
@settings(max_examples=examples(300))
@given(st.lists(STEPS, max_size=25))
def test_one_node_at_a_time_shows_a_family_and_after_faults_one_does(
    steps: list[tuple[object, ...]],
) -> None:
    async def run() -> None:
        async with trio.open_nursery() as nursery:
            model = Model(nursery)
            for name in NAMES:
                model.start(name)
            nursery.start_soon(model.watch)
            for each in steps:
                await model.step(each)
                await trio.sleep(0.05)
            await model.heal()
            nursery.cancel_scope.cancel()

    trio.run(run, clock=MockClock(autojump_threshold=0))
