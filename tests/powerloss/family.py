"""A family of branches under power failures: the script of a worker, what it promises, the audit.

    family make two one 7        from here on there may be a branch of `one` at its version 7
    family made two              it is there
    family change two {…}        from here on it may hold this
    family changed two 8         it does, at version 8
    family keep two 0            from here on versions may be kept for so many seconds
    family kept two 0            they are
    family remove two            from here on it may be gone
    family removed two           it is

Several files change for one request: the records of the control plane, the file of the parent and
that of the branch. After a failure the control plane starts on the folder, and finishes or undoes
what was cut short. Then each member must hold what `Member` says, as it is and as it was; all files
must be sound, and have no page and no pin for nobody.

The clock stands still, so a version is kept for ever, or, where history is 0, may be gone at once.
"""

from __future__ import annotations

import json
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Final

from qserver.control.branches import Origin
from qserver.control.databases import OpenDatabase
from qserver.durability.data_folder import DataFolder
from qserver.errors import HistoryTooOld, QserverError, UndefinedTable, first_of
from qserver.query.sql_database import Statement
from tests.control.planes import NOON, Opened, opened_plane
from tests.torture.branching import problems_of_files
from tests.torture.family import Content, Member
from tests.torture.model import Presence

if TYPE_CHECKING:
    from tests.powerloss.audit import Promises

KEYS: Final = 200
ALWAYS: Final = 1_000_000
CONTROL: Final = "control"

_CREATE: Final = (
    Statement("CREATE TABLE t (id integer PRIMARY KEY, value bigint NOT NULL)"),
    Statement(f"INSERT INTO t SELECT n, 0 FROM generate_series(0, {KEYS - 1}) AS n"),
)
_READ: Final = "SELECT id, value FROM t"
_NEEDLESS: Final = (
    "select id from databases d where state = 'deleted'"
    " and not exists (select 1 from databases b where b.branch_of = d.id)"
)
_WRITE: Final = "UPDATE t SET value = $1 WHERE id BETWEEN $2 AND $3"


class Family:
    """What was promised of each member, up to a moment."""

    def __init__(self) -> None:
        self.members: dict[str, Member] = {}
        self.problems: list[str] = []

    def hear(self, words: list[str]) -> None:
        """Take note of a line of the worker."""
        what, name, *rest = words
        if what == "make":
            self.members[name] = self._made(name, *rest)
            return
        member = self.members[name]
        if what == "made":
            member.presence = Presence.THERE
        elif what == "change":
            content = {int(key): value for key, value in json.loads("".join(rest)).items()}
            member.begin_change(content, NOON)
        elif what == "changed":
            self.problems += member.hold(member.may_hold[-1], int(rest[0]))
        elif what == "keep":
            member.begin_history(int(rest[0]))
        elif what == "kept":
            self.problems += member.keep_history(int(rest[0]), NOON)
        elif what == "remove":
            member.presence = Presence.OPEN
        else:
            assert what == "removed"
            member.presence = Presence.ABSENT

    def _made(self, name: str, *origin: str) -> Member:
        if origin:
            parent, version = origin
            made = self.members[parent].branch(name, int(version))
        else:
            made = Member(name, versions={0: None})
        made.history = [ALWAYS]
        return made


# --- the worker ----------------------------------------------------------------------------------


class Script:
    """Requests to the control plane, each with its promises."""

    def __init__(self, opened: Opened, promise: Callable[[str], None]) -> None:
        self._opened = opened
        self._plane, self._grant = opened.plane, opened.grant
        self._said = promise
        self.family = Family()

    def _promise(self, *words: object) -> None:
        line = [str(word) for word in words]
        self.family.hear(line)
        self._said(" ".join(["family", *line]))

    async def make(self, name: str, parent: str | None = None, version: int | None = None) -> None:
        if parent is None:
            self._promise("make", name)
            await self._plane.records.create(self._grant, name)
        else:
            base = self.family.members[parent].newest if version is None else version
            self._promise("make", name, parent, base)
            await self._plane.records.create(self._grant, name, Origin(parent, version))
        self._promise("made", name)

    async def fill(self, name: str) -> None:
        await self._change(name, dict.fromkeys(range(KEYS), 0), *_CREATE)

    async def write(self, name: str, value: int, first: int, last: int) -> None:
        content = self.family.members[name].content
        assert content is not None
        after = {**content, **dict.fromkeys(range(first, last + 1), value)}
        await self._change(name, after, Statement(_WRITE, [value, first, last]))

    async def _change(self, name: str, after: Content, *statements: Statement) -> None:
        self._promise("change", name, json.dumps(after, separators=(",", ":")))
        with await self._plane.database(self._grant, name) as used:
            done = await used.sql.transaction(list(statements))
        self._promise("changed", name, done.version)

    async def restore(self, name: str, version: int) -> None:
        after = self.family.members[name].versions[version]
        self._promise("change", name, json.dumps(after, separators=(",", ":")))
        with await self._plane.database(self._grant, name) as used:
            made, _ = await used.database.restore_version(version)
        self._promise("changed", name, made)

    async def checkpoint(self, name: str) -> None:
        with await self._plane.database(self._grant, name) as used:
            await used.database.checkpoint()

    async def keep(self, name: str, seconds: int) -> None:
        self._promise("keep", name, seconds)
        await self._plane.records.keep_history(self._grant, name, seconds)
        self._promise("kept", name, seconds)

    async def remove(self, name: str) -> None:
        self._promise("remove", name)
        await self._plane.records.delete(self._grant, name)
        self._promise("removed", name)


async def live(folder: Path, promise: Callable[[str], None]) -> None:
    """A life in which each thing happens that a family can do."""
    async with _opened(folder) as opened:
        script = Script(opened, promise)
        newest = script.family.members
        await script.make("one")
        await script.fill("one")
        await script.write("one", 1, 0, 2)
        await script.checkpoint("one")
        await script.write("one", 2, 60, 130)
        old = newest["one"].newest
        await script.make("two", "one")
        await script.write("two", 3, 0, 0)
        await script.checkpoint("two")
        await script.write("one", 4, 100, 199)
        await script.checkpoint("one")
        await script.make("past", "one", old)
        await script.make("three", "two")
        await script.write("three", 5, 190, 195)
        await script.restore("one", old)
        await script.keep("one", 0)
        await script.checkpoint("one")
        await script.keep("one", ALWAYS)
        await script.write("past", 6, 7, 7)
        await script.remove("one")
        await script.write("two", 7, 30, 90)
        await script.checkpoint("two")
        await script.make("one")
        await script.fill("one")
        await script.remove("two")
        await script.remove("past")
        await script.write("three", 8, 5, 5)
        await script.checkpoint("three")
        await script.remove("three")


@asynccontextmanager
async def _opened(folder: Path) -> AsyncIterator[Opened]:
    async with opened_plane(DataFolder(folder), history=ALWAYS) as opened:
        yield opened


# --- the audit -----------------------------------------------------------------------------------


async def audit_family(folder: Path, promises: Promises) -> list[str]:
    """Start the control plane on what a failure has left, and compare it with what was promised."""
    data, family = folder / "data", promises.family
    problems = [*family.problems]
    try:
        async with _opened(data) as opened:
            problems += [each async for each in _compare_all(opened, family)]
            records = await opened.plane._store.rows("select id from databases")
            needless = await opened.plane._store.rows(_NEEDLESS)
    except (QserverError, ExceptionGroup) as error:
        return [*problems, f"it cannot be used: {first_of(error)!r}"]
    problems += [f"the database {id} is deleted, and needed by nobody" for (id,) in needless]
    left = set(DataFolder(data).names()) ^ {CONTROL, *(id for (id,) in records)}
    if left:
        problems.append(f"files without a record, or the reverse: {left}")
    return problems + await problems_of_files(data, at_rest=True)


async def _compare_all(opened: Opened, family: Family) -> AsyncIterator[str]:
    records = {each.name: each for each in (await opened.plane.records.list_page(opened.grant))[0]}
    for name, member in family.members.items():
        record = records.pop(name, None)
        if record is None:
            if member.presence is Presence.THERE:
                yield f"{name} was made and is gone"
        elif member.presence is Presence.ABSENT:
            yield f"{name} was removed and is there"
        else:
            if member.parent is not None and record.branch_version != member.base:
                yield f"{name} was made at {member.base}, not at {record.branch_version}"
            with await opened.plane.database(opened.grant, name) as used:
                async for problem in _compare(used, member):
                    yield problem
    for name in records.keys() - {"main"}:
        yield f"nobody has made {name}"


async def _compare(used: OpenDatabase, member: Member) -> AsyncIterator[str]:
    newest = (await used.database.wait_durable_snapshot()).version
    content = await _content(used, newest)
    if content not in member.may_hold:
        yield f"{member.name} holds {content}, not one of {member.may_hold}"
    if newest < member.newest:
        yield f"{member.name} is at version {newest}, and was at {member.newest}"
    for version, held in member.versions.items():
        try:
            if await _content(used, version) != held:
                yield f"version {version} of {member.name} is not what it was"
        except HistoryTooOld:
            if member.must_have(version, NOON):
                yield f"version {version} of {member.name} must be kept, and is refused"


async def _content(used: OpenDatabase, version: int) -> Content:
    try:
        done = await used.sql.transaction([Statement(_READ)], as_of=version)
    except UndefinedTable:
        return None
    return dict(done.results[0].rows)
