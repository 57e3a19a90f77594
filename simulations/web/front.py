"""The front end of one simulated process: the product's application on top of its database.

No run asks the routes that are not hot: the web framework behind them is loaded in a thread, and
takes longer than most runs. All routes that run SQL are there.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

import trio

from qserver.config import load
from qserver.control.databases import OpenDatabase
from qserver.control.logs import MemoryLogs
from qserver.control.open_transactions import Held
from qserver.engine.database import Database
from qserver.http1 import Request
from qserver.query.sql_database import SqlDatabase
from qserver.web.app import Application
from qserver.web.service.service import Service, ServiceState
from qserver.web.statements.open_transactions import name_of_commit
from simulations.web.keys import Keys
from simulations.world import SimulatedWorld

SETTINGS: Final = load({})
DATABASE: Final = "db_main"


class Front:
    """The application of one process.

    `nursery` is the process's own: its tasks end when the process crashes. `problems` gets what is
    wrong with an answer as such, whatever it says.
    """

    def __init__(
        self,
        world: SimulatedWorld,
        database: Database,
        nursery: trio.Nursery,
        problems: list[str],
    ) -> None:
        self.world = world
        self.nursery = nursery
        self.service = Service(SETTINGS, world, MemoryLogs(), world.ids.randbytes)
        self.service.state = ServiceState.READY
        self.sql = SqlDatabase(database, world, self.service.memory)
        self._opened = OpenDatabase(DATABASE, database, self.sql)
        self.keys = Keys(world, self._opened, self.service.plane)
        self.application = Application(self.service, _is_running, "own-")
        self.problems = problems
        self.under_way = 0
        self.answered: dict[str, str] = {}
        """The request that got the answer with this id."""
        self._endpoints: dict[Request, Any] = {}
        self._arrived: list[Callable[[], None]] = []

    def endpoint(self, request: Request) -> Any:
        """Return the endpoint of a head, found once, as our server does it."""
        endpoint = self._endpoints.get(request)
        if endpoint is None:
            endpoint = self._endpoints[request] = self.application.endpoint(request)
        return endpoint

    def arrive(self, begin: Callable[[], None]) -> None:
        """Have a request begun together with others that arrive a little later."""
        self._arrived.append(begin)
        if len(self._arrived) == 1:
            self.nursery.start_soon(self._begin_arrived)

    async def _begin_arrived(self) -> None:
        """Begin them as our server's reactor does, which waits for nothing meanwhile."""
        world = self.world
        await trio.sleep(world.arrivals.expovariate(1.0) * world.profile.delay_seconds)
        arrived, self._arrived = self._arrived, []
        if len(arrived) > 1:
            world.reach("several requests began as one batch")
        world.batch.open(len(arrived))
        for begin in arrived:
            begin()
        world.batch.end()

    def name_of_commit(self, transaction: str) -> bytes:
        """Return the name under which the answer of a commit is stored."""
        return name_of_commit(transaction, DATABASE, self.keys.ordinary)

    def transactions_held(self) -> list[Held]:
        """Return the open transactions; some clients never come back to theirs."""
        return [held for held in self._opened.held if isinstance(held, Held)]

    def leftovers(self) -> list[str]:
        """Return what must not be left when no request is under way."""
        problems = []
        if self.under_way:
            problems.append(f"{self.under_way} requests have not been answered")
        users = self._opened.users - len(self._opened.held)  # who holds it between requests
        if users:
            problems.append(f"{users} requests have not given back the database")
        problems += [
            f"{held!r} has not been given back" for held in self.transactions_held() if held.is_used
        ]
        open_bytes = sum(held.transaction._pooled for held in self.transactions_held())
        for pool, held in ((self.service.memory, open_bytes), (self.service.bodies, 0)):
            if pool.held != held:
                problems.append(f"{pool.held - held} bytes have not been given back")
        if self.service.metrics.internal_errors:
            problems.append(f"{self.service.metrics.internal_errors} requests met a bug")
        return problems


def _is_running() -> Any:
    raise AssertionError("the process runs already")
