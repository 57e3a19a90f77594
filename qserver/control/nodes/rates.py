"""Requests of the last minute, counted by all nodes together: each organization has a home.

    request at the home ─► counted in its book                             no message
    request elsewhere ──► a permit in stock? ─► goes on                    no message
                          └─ none ─► the home is asked, the request waits  one round trip
    each second ────────► home: how many permits were used, how many are left, how many are wanted

**No stretch of 60 seconds holds more requests than the limit**, while nodes reach each other. A
permit counts from when it is given until 60 seconds after its use was reported, which is after the
use; or after it can be used no more. Who has it counts its time from when it asked, the home from
when it answered, so no two clocks are compared (`lease`). A home gives permits ahead of need, some
for the next second, and those that are not used come back: so an organization that is far from its
limit never waits, and near it is refused at most as early as others hold permits.

The home is a node that serves, by a hash. When nodes come or go some organizations get another
home. It first asks all others what they have let through in the last minute; who answers knows the
placement by then, and gives nothing out any more.

If a home cannot be reached, a node lets through on its own as many as its share: the limit divided
by the number of nodes, with what it let through before. And what a node that died had let through
is not known to the next home. Only then, for a minute, can there be more than the limit: at most
twice as many.
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from typing import Final, NoReturn

import msgspec
import trio

from qserver.control.nodes.lease import MARGIN
from qserver.control.nodes.owners import NodeOwners
from qserver.control.nodes.placement import chosen
from qserver.control.rates import SlidingLogs, Uncounted
from qserver.errors import QserverError
from qserver.limits import RATE_WINDOW_SECONDS

REPORT_SECONDS: Final = 1.0
PERMIT_SECONDS: Final = 5.0
"""For so long permits can be used, unless they are renewed."""
CALL_SECONDS: Final = 1.0
CUT_SECONDS: Final = 2.0
"""For so long a home that did not answer is not asked again."""
PERMITS_MIN: Final = 4
ROOM_SHARE: Final = 8
"""A node gets no more than so much of what is free, if it has no need of more now."""


class Stock(msgspec.Struct):
    """The permits of an organization at a node that is not its home."""

    home: int
    limit: int
    left: int = 0
    used: int = 0
    """Since the last report."""
    until: float = 0.0
    """Then permits that are left can be used no more."""
    total: int = 0
    """Requests of all nodes, as of the last report."""
    reset: int = 0
    refused_until: float = 0.0
    """Until then the home would give none."""
    cut_until: float = 0.0
    """Until then the home is not asked: it did not answer."""
    used_at: float = 0.0

    def more_wanted(self, now: float, count: int) -> int:
        """Return how many permits to ask for; those of an organization that rests go back.

        Those that have lapsed are gone: to report them would renew them, and by now the home may
        have given others as many.
        """
        if now >= self.until:
            self.left = 0
        if not count and now - self.used_at > PERMIT_SECONDS:
            self.left = 0
            return 0
        most = max(1, self.limit // 4, count)
        return max(0, min(most, max(PERMITS_MIN, 2 * self.used, count)) - self.left)

    def get(self, given: list[int], asked: list[int], sent: float, now: float) -> None:
        """Have what a home has given for what was asked then."""
        more, total, reset = given
        _, reported, _, wanted, _ = asked
        self.used -= reported
        self.left += more
        self.total, self.reset = total, reset
        self.until, self.cut_until = sent + PERMIT_SECONDS, 0.0
        is_refused = wanted and not more
        self.refused_until = now + REPORT_SECONDS / 4 if is_refused else 0.0


class NodeWindows:
    """Implements the `Windows` of rates. Start `run` in a nursery."""

    def __init__(self, clock: Callable[[], float], owners: NodeOwners) -> None:
        self._clock = clock
        self._owners = owners
        self._own = SlidingLogs(clock, RATE_WINDOW_SECONDS)
        """What this node has let through."""
        self._book = SlidingLogs(clock, RATE_WINDOW_SECONDS)
        """What all nodes have, of the organizations whose home this is."""
        self._given: dict[str, dict[int, tuple[int, float]]] = {}
        """Permits that nodes have, and until when, of these organizations."""
        self._known: dict[str, tuple[int, ...]] = {}
        """Organizations whose book is complete, with the nodes that served then."""
        self._stocks: dict[str, Stock] = {}
        self._calling: dict[str, trio.Event] = {}
        self._is_low = trio.Event()
        owners.answer("permits", self._permits)
        owners.answer("let_through", self._let_through)

    # --- for requests ---

    def take(self, name: str, limit: int, count: int = 1) -> tuple[int, int, int]:
        """See `SlidingLogs.take`; raises Uncounted if the home has to be asked first."""
        home = self._home(name)
        if home == self._owners.process:
            return self._take_here(name, limit, count)
        stock = self._stocks.get(name)
        now = self._clock()
        if stock is None or stock.home != home:
            stock = self._stocks[name] = Stock(home, limit)
        stock.limit = limit
        if stock.left >= count and now < stock.until:
            stock.left -= count
            stock.used += count
            stock.used_at = now
            self._own.add(name, count)
            if stock.left < PERMITS_MIN:
                self._is_low.set()
            return 0, min(limit, stock.total + stock.used), stock.reset
        if now < stock.cut_until:
            return self._own.take(name, max(1, limit // len(self._owners.everyone)), count)
        if now < stock.refused_until:
            return max(1, stock.reset), limit, max(1, stock.reset)
        raise Uncounted(f"the home of {name} has to count the request")

    def _take_here(self, name: str, limit: int, count: int) -> tuple[int, int, int]:
        if not self._is_known(name):
            raise Uncounted(f"this node has to hear of the requests of {name}")
        left = limit - self._given_now(name)
        if left < count:
            return 1, limit, 1
        wait, total, reset = self._book.take(name, left, count)
        if not wait:
            self._own.add(name, count)
        return wait, min(limit, total + limit - left), reset

    def give_back(self, name: str, count: int = 1) -> None:
        stock = self._stocks.get(name)
        self._own.give_back(name, count)
        if self._home(name) == self._owners.process:
            self._book.give_back(name, count)
        elif stock is not None and stock.used >= count:
            stock.used -= count
            stock.left += count

    def count(self, name: str) -> int:
        if self._home(name) == self._owners.process:
            return self._book.count(name)
        stock = self._stocks.get(name)
        return max(self._own.count(name), 0 if stock is None else stock.total + stock.used)

    def forget_old(self) -> None:
        self._own.forget_old()
        self._book.forget_old()
        now = self._clock()
        self._stocks = {
            name: each
            for name, each in self._stocks.items()
            if each.used or max(each.until, each.cut_until) > now
        }
        self._given = {name: each for name, each in self._given.items() if each}
        self._known = {name: each for name, each in self._known.items() if self._book.count(name)}

    def __len__(self) -> int:
        return len(self._own)

    async def wait(self, name: str, limit: int, count: int = 1) -> None:
        """Return when `take` can tell whether so many requests may go on."""
        if name in self._calling:
            await self._calling[name].wait()
            return
        home = self._home(name)
        if home != self._owners.process:
            if name not in self._stocks or self._stocks[name].home != home:
                self._stocks[name] = Stock(home, limit)
            await self._report(home, [name], count)
            return
        done = self._calling[name] = trio.Event()
        try:
            await self._complete(name)
        finally:
            del self._calling[name]
            done.set()

    # --- at a node that is not the home ---

    async def run(self) -> NoReturn:
        """Report to homes, each second and when permits run out."""
        while True:
            with trio.move_on_after(REPORT_SECONDS):
                await self._is_low.wait()
                await trio.sleep(REPORT_SECONDS / 20)
            self._is_low = trio.Event()
            homes: dict[int, list[str]] = {}
            for name, stock in self._stocks.items():
                is_due = (stock.used or stock.left) and self._clock() >= stock.cut_until
                if is_due and name not in self._calling:
                    homes.setdefault(stock.home, []).append(name)
            async with trio.open_nursery() as nursery:
                for home, names in homes.items():
                    nursery.start_soon(self._report, home, names)

    async def _report(self, home: int, names: list[str], count: int = 0) -> None:
        """Say what was used of the permits, and get more; what is left can be used meanwhile."""
        sent, asked, stocks = self._clock(), {}, {}
        names = [name for name in names if name not in self._calling and name in self._stocks]
        done = trio.Event()
        for name in names:
            stock = stocks[name] = self._stocks[name]
            self._calling[name] = done
            wanted = stock.more_wanted(sent, count)
            asked[name] = [stock.limit, stock.used, stock.left, wanted, count]
        try:
            found = await self._owners.ask(
                home,
                "permits",
                self._owners.process,
                self._owners.version,
                asked,
                seconds=CALL_SECONDS,
            )
        except QserverError:
            for stock in stocks.values():
                stock.cut_until = self._clock() + CUT_SECONDS
        else:
            for name, stock in stocks.items():
                if name in found:
                    stock.get(found[name], asked[name], sent, self._clock())
                elif self._stocks.get(name) is stock:  # another node is its home by now
                    del self._stocks[name]
        finally:
            for name in names:
                del self._calling[name]
            done.set()

    # --- at the home ---

    def _home(self, name: str) -> int:
        return chosen(name, self._owners.everyone)

    def _is_known(self, name: str) -> bool:
        """Return whether the book of an organization is complete."""
        serving = tuple(self._owners.everyone)
        known = self._known.get(name)
        if known is not None and known != serving and chosen(name, known) == self._owners.process:
            known = self._known[name] = serving  # it was the home before, and still is
        if known is None and len(serving) == 1:
            known = self._known[name] = serving
        return known == serving

    def _given_now(self, name: str) -> int:
        """Return how many permits nodes have. Those that have lapsed count as used until then."""
        given = self._given.get(name)
        if not given:
            return 0
        now = self._clock()
        for node, (count, until) in list(given.items()):
            if until <= now:
                del given[node]
                self._book.add(name, count)
        return sum(count for count, _ in given.values())

    async def _permits(
        self, node: int, version: int, asked: dict[str, list[int]]
    ) -> dict[str, list[int]]:
        """Count what a node has used of its permits, and give it more."""
        await self._owners.methods["look"](version)
        for name in asked:
            if self._home(name) == self._owners.process:
                await self._complete(name)
        found = {}
        for name, (limit, used, left, wanted, needed) in asked.items():
            if self._home(name) == self._owners.process and self._is_known(name):
                found[name] = self._given_to(node, name, limit, used, left, wanted, needed)
        return found

    def _given_to(
        self, node: int, name: str, limit: int, used: int, left: int, wanted: int, needed: int
    ) -> list[int]:
        """Return how many more a node gets, how many count of all, and when the first ends.

        The less room there is the fewer are given ahead of need: others may need them first.
        """
        given = self._given.setdefault(name, {})
        given.pop(node, None)
        if used:
            self._book.add(name, used)
        others = self._given_now(name)
        count = self._book.count(name)
        room = max(0, limit - count - others - left)
        granted = min(room, wanted, max(needed, room // ROOM_SHARE))
        if left + granted:
            given[node] = left + granted, self._clock() + PERMIT_SECONDS * MARGIN
        reset = self._book.seconds_until_first_ends(name) if count else 0
        return [granted, min(limit, count + others), reset]

    async def _complete(self, name: str) -> None:
        """Hear from all other nodes what they have let through, if this node does not know."""
        if self._is_known(name):
            return
        serving, version = tuple(self._owners.everyone), self._owners.version
        heard: list[int] = []

        async def ask(node: int) -> None:
            with suppress(QserverError):  # it is away, and knows of no other home
                found = await self._owners.ask(
                    node, "let_through", version, name, seconds=CALL_SECONDS
                )
                heard.append(found)

        async with trio.open_nursery() as nursery:
            for node in {*serving, *self._owners.living}:
                if node != self._owners.process:
                    nursery.start_soon(ask, node)
        unknown = sum(heard) + self._own.count(name) - self._book.count(name)
        if unknown > 0:
            self._book.add(name, unknown)
        self._known[name] = serving

    async def _let_through(self, version: int, name: str) -> int:
        """Return what this node has let through; from now on it asks the new home."""
        await self._owners.methods["look"](version)
        stock = self._stocks.get(name)
        if stock is not None and stock.home != self._home(name):
            del self._stocks[name]
        self._known.pop(name, None)
        return self._own.count(name)

    def __repr__(self) -> str:
        return f"requests of {len(self._own)} organizations, counted with other nodes"
