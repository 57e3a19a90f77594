"""Restores a folder, or one of its databases, as of a moment or a version.

The folder is new, and gets its name when all files in it were checked. Only whole databases are in
it: what the control database of that moment lists, and nothing else.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import aclosing
from math import inf
from pathlib import Path
from tempfile import TemporaryDirectory

import msgspec
import trio

from qserver.archive.layout import (
    Generation,
    complete,
    generations_in,
    holding,
    ranges_of,
    shown,
)
from qserver.archive.listed import (
    CONTROL,
    WITH_FILES,
    Listed,
    ancestors,
    databases_in,
    mark_deleting,
)
from qserver.archive.objects import Objects, is_ours
from qserver.archive.reading import Reader
from qserver.archive.rebuilding import Goal, Note, Rebuilding
from qserver.durability.check import Report, check_file
from qserver.durability.data_folder import COMPANIONS, DataFolder
from qserver.durability.files import beside, make_folder, remove_files
from qserver.durability.pinning import unpin_others
from qserver.durability.records import decode_time
from qserver.durability.sqlite import open_log
from qserver.errors import DataCorrupted, InvalidRequest, QserverError


class Wanted(msgspec.Struct, frozen=True):
    """What somebody asks for."""

    moment: float | None = None
    """None: the newest."""
    database: str | None = None
    """Its name or id; None: all."""
    version: int | None = None
    """Of that database, in place of the moment."""


class Restored(msgspec.Struct, frozen=True):
    generation: str
    moment: float
    """inf: the newest."""
    reports: dict[str, Report]
    """Of all files."""
    called: dict[str, str]
    """The names of databases, by id."""
    warnings: list[str]


class Restoring:
    def __init__(self, objects: Objects, folder: Path, progress: Callable[[str], Note]) -> None:
        """`folder` is empty, or not there; `progress` is told what begins, and then how far."""
        self._objects = objects
        self._folder = folder
        self._progress = progress
        self._files = DataFolder(folder)
        self._generations: Sequence[Generation] = []

    async def run(self, wanted: Wanted) -> Restored:
        """Raises InvalidRequest for what is not kept, DataCorrupted for what is missing."""
        self._generations = await trio.to_thread.run_sync(found_in, self._objects)
        make_folder(self._folder)
        if wanted.version is not None:
            assert wanted.database is not None, "the command line asks for both"
            name = await self._name_at_any_time(wanted.database)
            generation, time = await self._of_version(name, wanted.version)
            moment = max(time, generation.begins)
            goal = Goal(moment, versions={name: wanted.version})
            return await self._restored(generation, goal, wanted.database)
        goal = Goal(inf if wanted.moment is None else wanted.moment)
        refused: QserverError | None = None
        for generation in self._of_moment(goal.moment):
            try:
                return await self._restored(generation, goal, wanted.database)
            except (DataCorrupted, InvalidRequest) as error:  # an older one may have the moment
                refused = refused or error
                self._remove(self._files.all_names())
        assert refused is not None
        raise refused

    async def _restored(self, generation: Generation, goal: Goal, database: str | None) -> Restored:
        if database is not None:
            only = msgspec.structs.replace(goal, names=frozenset({CONTROL}))
            await self._build(generation, only, "looking for the database")
            listed = await databases_in(self._files.file_of(CONTROL))
            name = named(listed, database, shown_moment(goal.moment))
            names = frozenset({CONTROL, name, *ancestors(listed, name)})
            goal = msgspec.structs.replace(goal, names=names)
            self._remove(self._files.names())
        built = await self._build(generation, goal, "restoring")
        return await self._finish(generation, goal, built)

    async def _build(self, generation: Generation, goal: Goal, what: str) -> Rebuilding:
        if generation.missing and goal.moment == inf and not goal.versions:
            raise missing_segment(self._objects, generation)
        reader = Reader(self._objects, generation)
        built = Rebuilding(reader, self._folder, goal, self._progress(what))
        try:
            await built.run()
        except DataCorrupted as error:
            if error.hint is None:
                others = [each for each in self._generations if each is not generation]
                raise DataCorrupted(error.message, hint=restorable(others)) from error
            raise
        if CONTROL not in built.ends:
            raise DataCorrupted(f"{generation.name} has no control database")
        for name, version in goal.versions.items():
            if goal.wants(name) and built.ends.get(name) != version:
                raise DataCorrupted(f"version {version} of {name} cannot be made of its backup")
        return built

    async def _finish(self, generation: Generation, goal: Goal, built: Rebuilding) -> Restored:
        """Leave what control lists, and check it."""
        control = self._files.file_of(CONTROL)
        listed = await databases_in(control)
        with_files = {name for name, each in listed.items() if each.state in WITH_FILES}
        kept = with_files & built.ends.keys()
        warnings = self._lost(goal, built, {*filter(goal.wants, with_files), CONTROL})
        for name in sorted(kept & built.removed.keys()):
            warnings.append(
                f"{listed[name].called} ({name}) was deleted soon after that moment: what it got"
                f" after {shown(built.removed[name])} is not there"
            )
        if not generation.has_begun:
            warnings.append(
                f"the files are those that were copied until {shown(generation.begins)}, one after"
                " the other: nothing was saved after that"
            )
        self._remove(set(self._files.names()) - kept - {CONTROL})
        for name in with_files - kept:
            is_first = listed[name].parent is None and listed[name].state == "ready"
            if is_first and goal.wants(name) and name not in built.lost:
                async with await open_log(self._files.file_of(name)):
                    kept.add(name)  # nothing was ever written to it
                if goal.moment != inf:
                    warnings.append(
                        f"{listed[name].called} ({name}) is empty: nothing was in it when it was"
                        " looked at, or it was deleted before"
                    )
        absent = with_files - kept
        if absent:
            await mark_deleting(control, absent)
            for name in sorted(absent):
                if goal.wants(name) and listed[name].state == "ready":
                    warnings.append(
                        f"{listed[name].called} ({name}) is left out: it was made or deleted at"
                        " that moment"
                    )
        for name in kept:
            async with await open_log(self._files.file_of(name)) as log:
                await unpin_others(log, kept)
        reports = {}
        for name in [CONTROL, *sorted(kept)]:
            note = self._progress(f"checking {name}")
            reports[name] = await check_file(self._files.file_of(name), note)
            if not reports[name].is_sound:
                raise DataCorrupted(
                    f"{name}, as it was restored, is damaged: {reports[name].problems[0]}",
                    hint="Nothing is in place. Restore another moment, and report this.",
                )
        called = {name: listed[name].called for name in kept}
        return Restored(generation.name, goal.moment, reports, called, warnings)

    def _lost(self, goal: Goal, built: Rebuilding, names: set[str]) -> list[str]:
        """Refuse what was not copied up to the moment; of the newest, only warn."""
        warnings = [built.explain_lost(root) for root in built.lost if root in names]
        if warnings and goal.moment != inf and not goal.versions:
            raise InvalidRequest(
                f"{shown(goal.moment)} cannot be restored: {warnings[0]}",
                hint="Restore an earlier or a later moment, or other databases with --database."
                " qserver check tells when the files were copied again.",
            )
        return warnings

    def _remove(self, names: Sequence[str] | set[str]) -> None:
        for name in names:
            path = self._files.file_of(name)
            remove_files(beside(path, companion) for companion in COMPANIONS)

    # --- moments and versions ---

    def _of_moment(self, moment: float) -> list[Generation]:
        """Return generations that have a moment, or raise InvalidRequest that says which do."""
        found = holding(self._generations, moment)
        if found:
            return found
        where = f"{shown(moment)} is not in {self._objects.place}"
        begun = [each for each in complete(self._generations) if each.begins <= moment]
        if begun and begun[-1].missing:
            where += f": segment {begun[-1].missing[0]} of {begun[-1].name} is missing"
        raise InvalidRequest(where, hint=restorable(self._generations))

    async def _name_at_any_time(self, database: str) -> str:
        """Return the id of a database that is listed at the end of a generation, or what it is."""
        for generation in reversed(complete(self._generations)):
            with TemporaryDirectory(prefix="qserver-restore-") as temporary:
                reader = Reader(self._objects, generation)
                goal = Goal(names=frozenset({CONTROL}))
                await Rebuilding(reader, Path(temporary), goal, lambda share: None).run()
                listed = await databases_in(DataFolder(Path(temporary)).file_of(CONTROL))
            if database in listed:
                return database
            if any(each.called == database for each in listed.values()):
                return named(listed, database, "the newest moment")
        return database

    async def _of_version(self, name: str, version: int) -> tuple[Generation, float]:
        """Return the generation that has a version, and the time of the version."""
        known: list[str] = []
        for generation in reversed(complete(self._generations)):
            reader = Reader(self._objects, generation)
            manifest, _ = await trio.to_thread.run_sync(reader.manifest)
            first = last = None
            copies = list(manifest.families)
            names = frozenset({name})
            async with aclosing(reader.segments(generation.last, names)) as segments:
                async for segment in segments:
                    copies += segment.copies
                    for changes in segment.changes:
                        if changes.database == name and changes.records:
                            first = changes.version if first is None else first
                            last = changes.records[-1][0]
                            found = dict(changes.records).get(version)
                            if found is not None:
                                return generation, decode_time(found)
            for end in [f.end for copy in copies for f in copy.files if f.database == name]:
                if end.version == version:
                    return generation, end.time
                first = end.version if first is None else min(first, end.version)
                last = max(end.version, last or 0)
            if first is not None:
                known.append(f"{first} to {last}")
        if not known:
            raise InvalidRequest(
                f"there is no database {name} in {self._objects.place}",
                hint="If it was deleted since, name its id, or name a moment with --at.",
            )
        raise InvalidRequest(
            f"version {version} of {name} is not in {self._objects.place}",
            hint=f"It has {', '.join(reversed(known))}. An older version"
            " can be read with as_of after a restore, as far as history goes back.",
        )

    def __repr__(self) -> str:
        return f"a restore of {self._objects!r} into {self._folder}"


def found_in(objects: Objects) -> list[Generation]:
    """Return the generations of a backup; raise InvalidRequest if there is none."""
    if not is_ours(objects):
        raise InvalidRequest(
            f"{objects.place} has no continuous backup",
            hint="Name what qserver backup --continuous was given.",
        )
    generations = generations_in(objects.keys())
    if not complete(generations):
        raise InvalidRequest(
            f"{objects.place} has no complete generation yet",
            hint="The first copy of all files is being made, or was not made to its end.",
        )
    return generations


def restorable(generations: Sequence[Generation]) -> str:
    """Return a sentence that says which moments can be restored."""
    ranges = [f"{shown(first)} to {shown(last)}" for first, last in ranges_of(generations)]
    return f"What can be restored: {'; '.join(ranges) or 'nothing else'}."


def missing_segment(objects: Objects, generation: Generation) -> DataCorrupted:
    return DataCorrupted(
        f"segment {generation.missing[0]} of {generation.name} is missing in {objects.place}",
        hint=f"What was before it can be restored: --at {shown(generation.until)}",
    )


def named(listed: dict[str, Listed], database: str, when: str) -> str:
    """Return the id of a database by its name or id."""
    if database in listed and listed[database].state == "ready":
        return database
    ready = {name: each for name, each in listed.items() if each.state == "ready"}
    found = [name for name, each in ready.items() if each.called == database]
    if len(found) == 1:
        return found[0]
    if found:
        raise InvalidRequest(
            f"several databases are called {database}",
            hint=f"Name one by its id: {', '.join(sorted(found))}.",
        )
    names = sorted({each.called for each in ready.values()})
    raise InvalidRequest(
        f"there was no database {database} at {when}",
        hint=f"There were {', '.join(names[:20]) or 'none'}.",
    )


def shown_moment(moment: float) -> str:
    return "the newest moment" if moment == inf else shown(moment)
