"""Measures how many bytes each organization stores, and decides whether it may store more.

    once a second ─► files of databases in use ─► sum of the organization ─► StorageQuota.full
                └──► free space of the disk ─────────────────────────────────────┘

A database takes what its files take: data, log, history, and free pages in them. The first look
that finds a database of an organization open measures all files of that organization; later looks
measure those in use. Between two looks an organization may exceed its bound.

Several processes share the folder: each measures what it has open once a second, and what others
may have open now and then. So an organization may exceed its bound for some seconds.

Past the bound only statements that store more are refused (see `query.storage_quota`). Then each
look takes a checkpoint of a database that has new commits, so that space which a DELETE frees
returns soon and the organization recovers by itself.

Other programs may fill the disk to its last byte. Then not even a DELETE could be logged. So a
reserve is held (`durability.reserve`), and given up when nothing else is left: for records that
remove rows, and for the checkpoint that frees their pages.

The measure is not exact to the byte, and nothing waits for it: a statement only reads
`StorageQuota.full`.
"""

from __future__ import annotations

import msgspec
import trio

from qserver.control.databases import Databases, OpenDatabase
from qserver.control.owners import LOOK_SECONDS, Owners
from qserver.control.shares import Share, Shares
from qserver.control.store import Store
from qserver.durability.files import Disk
from qserver.errors import DiskFull, QserverError
from qserver.limits import DISK_FREE_BYTES_MIN, DISK_RESERVE_BYTES

OTHERS_SECONDS = 5.0
"""How often files are measured that other processes write."""

FILES_AT_ONCE = 16
"""Databases that are measured before others may run."""


class Organization(msgspec.Struct, eq=False):
    """An organization that has had a database open, and the sizes of its files."""

    id: str
    share: Share
    sizes: dict[str, int]

    @property
    def stored_bytes(self) -> int:
        return sum(self.sizes.values())


class SpaceStatistics(msgspec.Struct, frozen=True):
    disk_free_bytes: int | None
    organizations_full: int
    """Organizations that have been in use, and store as much as they may."""


class Space:
    def __init__(self, store: Store, databases: Databases, shares: Shares, owners: Owners) -> None:
        self._shares = shares
        self._owners = owners
        owners.answer("sizes", self._sizes)
        self._others_at = 0.0
        """When the files of other processes are measured next."""
        self._store = store
        self._databases = databases
        self._organizations: dict[str, Organization] = {}
        self._owner: dict[str, str] = {}
        """The organizations of databases."""
        self._seen: dict[str, float] = {}
        """When a database that was measured had been used last."""
        self._disk_full: DiskFull | None = None
        self.disk_free: int | None = None

    async def measure(self) -> None:
        """Measure the files in use, and set the quotas."""
        self._measure_disk()
        await self._measure_others()
        measured = 0
        for opened in self._databases.all_open():
            organization = await self._owner_of(opened.id)
            if organization is None:
                continue
            full = opened.quota.full is not None
            if opened.users or opened.used_at != self._seen.get(opened.id) or full:
                self._measure(organization, opened.id)
                self._seen[opened.id] = opened.used_at
                measured += 1
                if measured % FILES_AT_ONCE == 0:
                    await trio.lowlevel.checkpoint()
        for opened in self._databases.all_open():
            if self._is_full(opened):
                opened.database.save_soon()
                await self._databases.logs.shrink(opened.id)

    async def _measure_others(self) -> None:
        """Measure files that other processes write, now and then."""
        if self._owners.is_alone or trio.current_time() < self._others_at:
            return
        self._others_at = trio.current_time() + OTHERS_SECONDS
        for organization in list(self._organizations.values()):
            await self._measure_all(organization)

    def _measure_disk(self) -> None:
        disk = self._databases.logs.disk()
        self.disk_free = None if disk is None else disk.free
        self._disk_full = None
        if disk is not None and not self._has_room(disk):
            self._disk_full = DiskFull(
                "the server's disk is almost full",
                hint="Delete what is not needed, or ask the server's operator to make room. It"
                " goes on by itself.",
            )

    @property
    def is_disk_full(self) -> bool:
        return self._disk_full is not None

    def _has_room(self, disk: Disk) -> bool:
        """Return whether anybody may store more.

        The reserve is given up when nothing else is left, and taken again when there is room.
        """
        size, held = min(DISK_RESERVE_BYTES, disk.total // 16), self._databases.logs.reserved_bytes
        left = disk.free + held - size
        has_room = left >= min(DISK_FREE_BYTES_MIN, disk.total // 16)
        if self._owners.shares_files and not self._owners.is_leader:
            pass  # it has the reserve of all
        elif held and disk.free < size:
            self._databases.logs.hold_reserve(0)
        elif held < size and has_room:
            self._databases.logs.hold_reserve(size)
        return has_room

    def _is_full(self, opened: OpenDatabase) -> bool:
        owner = self._owner.get(opened.id)
        if owner is None:
            return False
        opened.quota.full = self._disk_full or self._full(self._organizations[owner])
        return opened.quota.full is not None

    def _full(self, organization: Organization) -> DiskFull | None:
        most = organization.share.limits.stored_bytes
        if most is None or organization.stored_bytes < most:
            return None
        return DiskFull(
            f"the databases of the organization take {organization.stored_bytes} bytes, and"
            f" {most} are allowed",
            hint="Delete rows, tables or databases that are not needed. Reads, DELETE, TRUNCATE"
            " and DROP work; the rest goes on by itself when there is room. What older versions"
            " need is freed when they end: a shorter history frees it at once.",
        )

    async def check_room(self, organization_id: str) -> None:
        """Raise DiskFull if the organization may store no more."""
        self._measure_disk()
        organization = await self._known(organization_id)
        if not self._owners.is_alone:
            await self._measure_all(organization)
        full = self._disk_full or self._full(organization)
        if full is not None:
            raise full

    async def stored_bytes(self, organization_id: str) -> int:
        organization = await self._known(organization_id)
        await self._measure_all(organization)
        return organization.stored_bytes

    async def _measure_all(self, organization: Organization) -> None:
        """Measure all files of an organization, whoever writes them."""
        found = await self._store.read_here(
            "select id, family from databases where organization_id = $1", organization.id
        )
        wanted: dict[int, list[str]] = {}
        for database_id, family in found.rows:
            here = self._owners.shares_files or self._owners.is_here(family)
            owner = self._owners.process if here else self._owners.owner_of(family)
            wanted.setdefault(owner, []).append(database_id)
        sizes: dict[str, int] = {}
        for owner, ids in wanted.items():
            try:
                measured = await self._owners.ask(owner, "sizes", ids, seconds=LOOK_SECONDS)
            except QserverError:  # it is away: what was last known of it counts
                measured = [organization.sizes.get(each, 0) for each in ids]
            sizes.update(zip(ids, measured, strict=True))
        organization.sizes = sizes

    async def _sizes(self, ids: list[str]) -> list[int]:
        """Return the bytes of files that this process sees."""
        sizes = []
        for database_id in ids:
            sizes.append(self._databases.logs.size_bytes(database_id))
            if len(sizes) % FILES_AT_ONCE == 0:
                await trio.lowlevel.checkpoint()
        return sizes

    def forget(self, organization_id: str, database_id: str) -> None:
        """Stop counting a database that is gone."""
        self._owner.pop(database_id, None)
        self._seen.pop(database_id, None)
        known = self._organizations.get(organization_id)
        if known is not None:
            known.sizes.pop(database_id, None)

    def _measure(self, organization: Organization, database_id: str) -> None:
        organization.sizes[database_id] = self._databases.logs.size_bytes(database_id)

    async def _owner_of(self, database_id: str) -> Organization | None:
        """Return the organization of a database; None for one of our own, or a deleted one."""
        owner = self._owner.get(database_id)
        if owner is not None:
            return self._organizations[owner]
        found = await self._store.read_here(
            "select organization_id from databases where id = $1", database_id
        )
        if not found.rows:
            return None
        organization = await self._known(found.rows[0][0])
        self._owner[database_id] = organization.id
        return organization

    async def _known(self, organization_id: str) -> Organization:
        known = self._organizations.get(organization_id)
        if known is not None:
            return known
        found = await self._store.read_here(
            "select tier, limits from organizations where id = $1", organization_id
        )
        ((tier, own),) = found.rows
        share = self._shares.share(organization_id, tier, own)
        organization = Organization(organization_id, share, {})
        await self._measure_all(organization)
        return self._organizations.setdefault(organization_id, organization)

    def statistics(self) -> SpaceStatistics:
        full = [each for each in self._organizations.values() if self._full(each) is not None]
        return SpaceStatistics(self.disk_free, len(full))

    def __repr__(self) -> str:
        return f"the space of {len(self._organizations)} organizations"
