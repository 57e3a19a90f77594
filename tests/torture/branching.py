"""One who makes branches while the server dies: see `family` for what must hold.

    write       some rows of a member
    back        reads a member as it was
    branch      makes a branch of a member, as it is or as it was
    trial       a transaction with `"branch": true`
    restore     makes a member what it was
    trim        changes how long versions are kept, so that checkpoints let them go
    delete      a member, also before its branches

The root is made again under its name when it was deleted. Nothing of the old one may be there.
"""

from __future__ import annotations

import time
from collections.abc import Awaitable, Callable, Iterable
from pathlib import Path
from random import Random
from typing import Any, Final

from qserver.client import Statement, TrioClient, requests
from qserver.durability.check import check_file
from qserver.durability.data_folder import SUFFIX, DataFolder
from qserver.errors import Applied, HistoryTooOld, QserverError, UndefinedTable
from tests.torture.clients import BusyClient
from tests.torture.family import HISTORY_DEFAULT, Content, Member
from tests.torture.model import Model, Presence

KEYS: Final = 300
MEMBERS_MAX: Final = 5
HISTORIES: Final = (0, 1, 3, HISTORY_DEFAULT, HISTORY_DEFAULT)
LOOKS_BACK: Final = 2
"""Versions of each member that are read after a restart."""
LEAKED: Final = "never be forgotten"

_WAYS: Final = {
    "write": 30,
    "back": 15,
    "branch": 12,
    "trial": 5,
    "restore": 6,
    "trim": 5,
    "delete": 8,
}
_SETUP: Final = (
    "CREATE TABLE t (id integer PRIMARY KEY, value bigint NOT NULL)",
    f"INSERT INTO t SELECT n, 0 FROM generate_series(0, {KEYS - 1}) AS n",
)
_READ: Final = "SELECT id, value FROM t"
_WRITE: Final = "UPDATE t SET value = $1 WHERE id = ANY($2)"


class BranchingClient(BusyClient):
    """The one who writes a family, and knows what it must hold."""

    ways = _WAYS
    goes_on_in_doubt = False

    def __init__(self, model: Model, chance: Random, number: int) -> None:
        super().__init__(model, chance)
        self._prefix = f"family{number}-"
        self._root = f"{self._prefix}root"
        self._members: list[Member] = []
        self._trials: list[tuple[Member, Content]] = []
        """Transactions that may have left a branch, whose name nobody knows."""
        self._dead: set[str] = set()

    # --- what it does ---

    async def _write(self) -> None:
        member = await self._any_member()
        after, statement = self._change_of(member)
        await self._change(
            member,
            after,
            lambda: self._client.query(statement.sql, statement.params, database=member.name),
        )

    async def _back(self) -> None:
        await self._look_back(self._client, await self._any_member())

    async def _branch(self) -> None:
        if len(self._members) >= MEMBERS_MAX:
            return await self._delete()
        parent = await self._any_member()
        older = self._chance.random() < 0.4
        version = self._old_version(parent) if older else parent.newest
        member = parent.branch(f"{self._prefix}{self._model.next_number()}", version)
        self._members.append(member)
        as_of = version if older else None
        try:
            await self._make(
                member, lambda: self._client.create_database(member.name, parent.name, as_of)
            )
        except HistoryTooOld:
            self._refused(parent, version)

    async def _trial(self) -> None:
        parent = await self._any_member()
        if "branch" in parent.name or len(self._members) >= MEMBERS_MAX:
            return
        after, statement = self._change_of(parent)
        self._trials.append((parent, after))
        try:
            done = await self._client.transaction([statement], database=parent.name, branch=True)
        except QserverError as error:
            if error.applied is not Applied.UNKNOWN:
                self._trials.pop()
            raise
        self._trials.pop()
        self._model.count_answer()
        assert done.database is not None and done.version is not None
        member = self._adopt(done.database, parent, after)
        self._note(member.hold(after, done.version))
        if self._chance.random() < 0.5:
            await self._client.keep_database(member.name)

    async def _restore(self) -> None:
        member = await self._any_member()
        version = self._old_version(member)
        try:
            await self._change(
                member,
                member.versions[version],
                lambda: self._client.restore_database(member.name, version),
            )
        except HistoryTooOld:
            self._refused(member, version)

    async def _trim(self) -> None:
        member, seconds = await self._any_member(), self._chance.choice(HISTORIES)
        before = member.history
        member.begin_history(seconds)
        try:
            await self._client.call(
                requests.record("PATCH", "databases", member.name, history=seconds)
            )
        except QserverError as error:
            if error.applied is not Applied.UNKNOWN:
                member.history = before
            raise
        self._note(member.keep_history(seconds, time.time()))

    async def _delete(self) -> None:
        if self._members:
            await self._remove(self._client, self._chance.choice(self._members))

    # --- how it is done ---

    async def _any_member(self) -> Member:
        """Some member; the root is made if it is not there, and filled if it is empty."""
        if not any(each.name == self._root for each in self._members):
            root = Member(self._root, versions={0: None})
            self._members.append(root)
            await self._make(root, lambda: self._client.create_database(self._root))
        member = self._chance.choice(self._members)
        if member.content is None:
            content = dict.fromkeys(range(KEYS), 0)
            await self._change(
                member, content, lambda: self._client.transaction(_SETUP, database=member.name)
            )
        return member

    def _change_of(self, member: Member) -> tuple[Content, Statement]:
        first, count = self._chance.randrange(KEYS), self._chance.choice([1, 3, 60])
        keys = [key for key in range(first, first + count) if key < KEYS]
        value = self._model.next_number()
        assert member.content is not None
        after = {**member.content, **dict.fromkeys(keys, value)}
        return after, Statement(_WRITE, [value, keys])

    def _old_version(self, member: Member) -> int:
        """A version that had the table; recent ones are more often still there."""
        versions = sorted(each for each, held in member.versions.items() if held is not None)
        return self._chance.choice(versions[-12:] if self._chance.random() < 0.7 else versions)

    async def _make(self, member: Member, send: Callable[[], Awaitable[Any]]) -> None:
        try:
            record = await send()
        except QserverError as error:
            if error.applied is not Applied.UNKNOWN:
                self._members.remove(member)
            raise
        member.presence, member.id = Presence.THERE, record["id"]
        if member.parent is not None and record["branch_version"] != member.base:
            self._note([f"{member.name} is made at {record['branch_version']}, not {member.base}"])
        self._model.count_answer()

    async def _change(
        self, member: Member, after: Content, send: Callable[[], Awaitable[Any]]
    ) -> None:
        before = member.content
        member.begin_change(after, time.time())
        try:
            answer = await send()
        except QserverError as error:
            if error.applied is not Applied.UNKNOWN:
                member.may_hold = [before]
            raise
        version = answer["version"] if isinstance(answer, dict) else answer.version
        self._note(member.hold(after, version))
        self._model.count_answer()

    async def _remove(self, client: TrioClient, member: Member) -> None:
        member.presence = Presence.OPEN
        try:
            await client.delete_database(member.name)
        except QserverError as error:
            if error.applied is not Applied.UNKNOWN:
                member.presence = Presence.THERE
            raise
        self._forget(member)
        self._model.count_answer()

    def _forget(self, member: Member) -> None:
        member.presence = Presence.ABSENT
        self._members.remove(member)
        if member.id is not None:
            self._dead.add(member.id)

    def _adopt(self, name: str, parent: Member, after: Content) -> Member:
        """Take up the branch of a transaction."""
        member = parent.branch(name, parent.newest)
        member.begin_change(after, time.time())
        member.presence = Presence.THERE
        self._members.append(member)
        return member

    async def _look_back(self, client: TrioClient, member: Member) -> None:
        version = self._old_version(member)
        try:
            found = await client.query(_READ, database=member.name, as_of=version)
        except HistoryTooOld:
            self._refused(member, version)
            return
        if found.version != version:
            self._note([f"{member.name} as of {version} is {found.version}"])
        self._note(member.compare(version, dict(found.rows)))

    def _refused(self, member: Member, version: int) -> None:
        if member.must_have(version, time.time()):
            self._note([f"version {version} of {member.name} must be kept, and is refused"])

    def _note(self, problems: Iterable[str]) -> None:
        self._model.problems += problems

    # --- after a restart ---

    async def compare(self, client: TrioClient) -> None:
        """Look at the whole family, and settle what was open."""
        records = {
            each["name"]: each
            for each in await client.databases()
            if each["name"].startswith(self._prefix)
        }
        for member in list(self._members):
            record = records.pop(member.name, None)
            if record is not None:
                await self._settle(client, member, record["id"])
            elif member.presence is Presence.THERE:
                self._note([f"{member.name} was acknowledged and is gone"])
            else:
                self._forget(member)
        for name, record in records.items():
            parents = [each for each in self._trials if name.startswith(f"{each[0].name}-branch-")]
            if not parents:
                self._note([f"there is a database {name} that nobody has made"])
                return
            await self._settle(client, self._adopt(name, *parents[0]), record["id"])
        self._trials.clear()

    async def _settle(self, client: TrioClient, member: Member, id: str) -> None:
        name = member.name
        record = await client.call(requests.record("GET", "databases", name))
        if id in self._dead or member.id not in (None, id):
            self._note([f"{name} was deleted and is there again"])
        if record["state"] != "ready":
            self._note([f"{name} is {record['state']} after a restart"])
            return
        if member.parent is not None and record["branch_version"] != member.base:
            self._note([f"{name} was made at {member.base}, not at {record['branch_version']}"])
        member.id, member.presence = id, Presence.THERE
        try:
            found = await client.query(_READ, database=name)
            content: Content = dict(found.rows)
        except UndefinedTable:
            content = None
        self._note(member.hold(content, record["version"]))
        self._note(member.keep_history(record["history"], time.time()))
        for _ in range(LOOKS_BACK if any(member.versions.values()) else 0):
            await self._look_back(client, member)

    @property
    def files(self) -> list[str]:
        """The names of its files that are there for certain."""
        return [each.id for each in self._members if each.id and each.presence is Presence.THERE]

    async def delete_all(self, client: TrioClient) -> None:
        """The root first, and a branch before its own branches: all must go in the end."""
        for member in list(self._members):
            await self._remove(client, member)


async def problems_of_files(
    folder: Path, names: Iterable[str] | None = None, *, at_rest: bool = False
) -> list[str]:
    """Read every page of these files, or of all, as `qserver check` does.

    After a kill there may be a pin, or half a branch, that the next start removes; at rest there
    may not. Pages that nobody will ever forget are wrong at any time.
    """
    if names is None:
        names = DataFolder(folder).names()
    problems = []
    for name in names:
        try:
            found = await check_file(folder / f"{name}{SUFFIX}")
        except QserverError as error:
            problems.append(f"{name} cannot be checked: {error}")
            continue
        wrong = [*found.problems, *(each for each in found.warnings if at_rest or LEAKED in each)]
        problems += [f"{name}: {each}" for each in wrong]
    return problems
