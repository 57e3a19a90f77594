"""The coordinator: the actor that orders commits, in rounds.

    take all waiting commits ─► Prepare to each shard they touch ─► votes ─► Decide ─► roots
        ─► publish the next snapshot ─► hand the round to the log ─► rerun short work in conflict

A round is one version. Its transactions commit in the order in which they were taken, as one log
record, so a crash keeps or loses the whole round. The coordinator does not wait for the log: it
validates the next round while the last one syncs, and the log writer releases the answers.

The protocol is optimistic two-phase commit. A shard alone decides transactions that touch no other
shard, so a round of those costs one message each way. Only a shard that holds part of a wider
transaction waits for `Decide`.

The snapshot says which shard owns which keys. Only the coordinator changes that, after a round: it
cuts ranges that have grown too large, joins small neighbours, and informs the shards.

The coordinator owns the catalog and checks what transactions read of it. Definitions change rarely,
so a transaction that changes any must have seen all as they are.

A round is a generator, see `work`, which the coordinator's task drives. Commits of one batch (see
`batch`) are a round that begins at the end of the batch, and outside of a batch a submitter begins
the round of a lone commit itself. The shards answer synchronously: the same decisions without a
hand-over. If that round has to wait, because a shard has much to do or the log is full, the task
finishes it, and further commits wait in the mailbox. If a round fails, the task fails, which ends
its generation only.

Conflicts do not storm. The coordinator reruns short work that conflicted, one after the other on
the newest state. Nothing can come between, so its writes need no second check, and all of it is
installed as one more round. Work that is known to be short may come here untried and runs in the
same way. Long work goes back to its gateway. After too many tries the gateway asks for an
`ExclusiveCommit`: no other transaction commits until it is returned.
"""

from __future__ import annotations

from collections.abc import Generator, Iterable, Mapping, Sequence
from functools import partial
from typing import Any, Final, TypeAlias, TypeVar

import msgspec
import trio
from msgspec.structs import replace

from qserver.durability.records import Definitions
from qserver.engine.batch import Batch
from qserver.engine.channels import Channels
from qserver.engine.conflict_origin import Writers
from qserver.engine.coordinator_ports import LogPort, ShardPort
from qserver.engine.mailbox import Mailbox, Receiver
from qserver.engine.messages import (
    Answer,
    Append,
    Commit,
    Committed,
    Conflicted,
    Decide,
    ExclusiveCommit,
    Failed,
    FromShard,
    Own,
    Prepare,
    ToShard,
    Voted,
)
from qserver.engine.readiness import BUSY, ENTERED, GATHERING, IDLE
from qserver.engine.snapshot_source import SnapshotSource
from qserver.engine.stored_answers import stamp_answers
from qserver.engine.versions import EngineRestarted, Versions
from qserver.engine.work import Rest, Step, WouldYield, begin, finish, run, run_at_once
from qserver.errors import DataCorrupted, LogFailed, TooManyRequests
from qserver.limits import ROUND_TRANSACTIONS_MAX
from qserver.storage.catalog import Catalog
from qserver.storage.conflict import Conflict
from qserver.storage.ranges import RangedTree, Roots, by_tree
from qserver.storage.routing import Part, parts_of, unconditional_parts
from qserver.storage.snapshot import Snapshot
from qserver.storage.transaction import Transaction
from qserver.storage.writes import (
    ANSWERS_TREE,
    CHANGES_AT_ONCE,
    Moment,
    Writes,
    count_changes,
    merge_writes,
)
from qserver.values.relations import Definition
from qserver.values.steps import at_once

ToCoordinator: TypeAlias = Commit | ExclusiveCommit | Rest
Answers: TypeAlias = list[tuple[Receiver, Answer]]

Made = TypeVar("Made")
Round: TypeAlias = Generator[Step, Any, Made]

PAUSE: Final = trio.lowlevel.checkpoint
"""Lets other tasks run without queueing behind long work: every commit waits for the round."""

WORK_BEFORE_YIELDING = 16
"""How many pieces of work the coordinator runs before it lets other tasks run."""


class CoordinatorStatistics(msgspec.Struct, frozen=True):
    version: int
    rounds: int
    commits: int
    conflicts: int
    rerun: int
    exclusive: int
    layouts: int
    """How often ranges were cut or joined."""


class Coordinator:
    def __init__(
        self,
        versions: Versions,
        snapshots: SnapshotSource,
        requests: Mailbox[ToCoordinator],
        from_shards: Mailbox[FromShard],
        shards: Sequence[ShardPort],
        log: LogPort,
        batch: Batch,
        channels: Channels,
    ) -> None:
        self.versions = versions
        self._snapshots = snapshots
        self.requests = requests
        self._from_shards = from_shards
        self._shards = shards
        self._log = log
        self._batch = batch
        self._channels = channels
        self._gathered: list[Commit] = []
        """Commits of the batch, which are the next round."""
        self.writers = Writers()
        self._readiness = BUSY
        self._crowded = False
        """Whether the last round that was taken from the mailbox had several commits."""
        self._round = 0
        self._commits = self._conflicts = self._rerun = self._exclusive = self._layouts = 0

    async def run(self) -> None:
        try:
            while True:
                self._readiness = IDLE
                requests = await self.requests.take(ROUND_TRANSACTIONS_MAX)
                self._readiness = BUSY
                await self._serve(requests)
                requests.clear()  # while idle, keep no snapshot that was read
        finally:
            self._readiness = BUSY

    async def _serve(self, requests: list[ToCoordinator]) -> None:
        for request in requests:
            if isinstance(request, Rest):  # begun before the others came
                await finish(request, PAUSE)
        commits = [request for request in requests if isinstance(request, Commit)]
        if len(commits) > 1:
            commits = await self._without_lone(commits)
        if commits:
            self._crowded = len(commits) > 1
            await run(self._commit(commits), PAUSE)
        for request in requests:
            if isinstance(request, ExclusiveCommit):
                await self._grant_exclusive(request)

    async def _without_lone(self, commits: list[Commit]) -> list[Commit]:
        """Give each commit that wants a version of its own a round; return the others."""
        others = []
        for commit in commits:
            if commit.transaction is not None and commit.transaction.own_version:
                await run(self._commit([commit]), PAUSE)
            else:
                others.append(commit)
        return others

    def submit(self, commit: Commit) -> None:
        """Commit with the others of the batch, or synchronously if nothing else is under way.

        That is, if no round is running or waiting for the log. Otherwise it waits for the next
        round, which takes all waiting commits. If the last round had several commits, waiting for
        others to share the next one is worthwhile.
        """
        requests = self.requests
        if self._readiness is IDLE and requests.is_empty and requests.may_pass_by():
            if self._batch.is_open:
                self._readiness = GATHERING
                self._batch.at_end(self._commit_gathered)
            elif self._log.is_free and not self._crowded:
                requests.pass_by(commit)
                self._begin_round([commit])
                return
        if self._readiness is GATHERING:
            requests.pass_by(commit)
            self._gathered.append(commit)
        else:
            requests.put_nowait(commit)

    def _commit_gathered(self) -> None:
        commits, self._gathered = self._gathered, []
        self._begin_round(commits)

    def _begin_round(self, commits: list[Commit]) -> None:
        """Run a round where its commits were submitted; the task finishes one that has to wait."""
        self._readiness = ENTERED  # an answered client may submit its next commit
        try:
            _, rest = begin(self._commit(commits))
        except Exception as error:
            rest = Rest(_failing(error), None)
        self._readiness = IDLE
        if rest is not None:
            self.requests.put_nowait(rest)

    # --- asking the shards ---

    def _asked(self, messages: Mapping[int, ToShard]) -> Round[list[FromShard]]:
        """Return the shards' answers in order of shards: at once if none of them takes long."""
        answers: list[FromShard] = []
        is_short = self._from_shards.may_pass_by()
        for shard, message in messages.items():
            is_short = is_short and not self._shards[shard].is_long(message)
        if not is_short:
            answers = yield partial(self._ask, messages)
            return answers
        for shard in sorted(messages):
            port, message = self._shards[shard], messages[shard]
            port.mailbox.pass_by(message)
            answers.append(at_once(port.answer(message)))
            self._from_shards.pass_by(answers[-1])
        return answers

    async def _ask(self, messages: Mapping[int, ToShard]) -> list[FromShard]:
        for shard in sorted(messages):
            self._shards[shard].mailbox.put_nowait(messages[shard])
        answers: list[FromShard] = []
        while len(answers) < len(messages):
            arrived = await self._from_shards.take(len(messages) - len(answers))
            answers.extend(arrived)
        return sorted(answers, key=_shard_of)

    async def _grant_exclusive(self, exclusive: ExclusiveCommit) -> None:
        """Let one transaction run and commit with no other commit in between."""
        self._exclusive += 1
        exclusive.granted.put(self._snapshot())
        commit = await exclusive.returned.wait()
        if commit is not None:
            await run(self._commit([commit]), PAUSE)

    # --- a round: it decides here, and waits where it yields ---

    def _commit(self, commits: list[Commit]) -> Round[None]:
        """Run one round, and a second for short work that is untried or conflicted in the first."""
        tried: list[Commit] = []
        short: list[Commit] = []
        for commit in commits:
            (short if commit.transaction is None else tried).append(commit)
        if tried:
            conflicts = yield from self._first_try(tried)
            for commit, conflict in zip(tried, conflicts, strict=True):
                if conflict is not None:
                    self._conflicts += 1
                    if commit.work is not None:
                        short.append(commit)
                    else:
                        commit.reply.put(Conflicted(conflict))
        if short:
            yield from self._run_all(short)

    def _first_try(self, commits: list[Commit]) -> Round[list[Conflict | None]]:
        conflicts, parts = yield from self.prepare(commits)
        votes = yield from self._asked(
            {shard: Prepare(self._round, tuple(of_shard)) for shard, of_shard in parts.items()}
        )
        for vote in votes:
            assert isinstance(vote, Voted)
            for part, conflict in zip(parts[vote.shard], vote.conflicts, strict=True):
                conflicts[part.position] = conflicts[part.position] or conflict
        winners: list[Transaction] = []
        requests: list[str | None] = []
        answers: Answers = []
        committed = Committed(self.versions.newest.version + 1)
        for commit, conflict in zip(commits, conflicts, strict=True):
            if conflict is None:
                transaction = commit.transaction
                assert transaction is not None, "it was tried"
                winners.append(transaction)
                requests.append(commit.request_id)
                if transaction.notifications:
                    self._tell(answers, committed, transaction)
                answers.append((commit.reply, committed))
        installed = yield from self._second_phase(votes, conflicts, parts)
        if winners:
            deltas = [winner.writes for winner in winners]
            redefining = [winner for winner in winners if winner.changes_catalog]
            self._commits += len(winners)
            if len(winners) > 1:
                self.writers.note(committed.version, winners, requests)
            yield from self._publish(installed, deltas, redefining, answers, requests)
        return conflicts

    def prepare(
        self, commits: list[Commit]
    ) -> Round[tuple[list[Conflict | None], dict[int, list[Part]]]]:
        """Check each transaction's catalog reads, and lay out the parts for each shard to vote on.

        Other tasks may run between the steps; only the coordinator changes the newest snapshot.
        """
        self._round += 1
        conflicts: list[Conflict | None] = []
        parts: dict[int, list[Part]] = {}
        redefined: Catalog | None = None
        newest = self.versions.newest
        for position, commit in enumerate(commits):
            transaction = commit.transaction
            assert transaction is not None, "untried work is run, not prepared"
            conflict = self.catalog_conflict(transaction, redefined)
            conflicts.append(conflict)
            if conflict is None:
                if ANSWERS_TREE in transaction.writes:
                    stamp_answers(transaction, newest.version + 1)
                if transaction.changes_catalog:
                    redefined = transaction.catalog
                routed = yield from parts_of(transaction, position, newest)
                for shard, part in routed.items():
                    if shard in parts:
                        parts[shard].append(part)
                    else:
                        parts[shard] = [part]
        return conflicts, parts

    def catalog_conflict(
        self, transaction: Transaction, redefined: Catalog | None
    ) -> Conflict | None:
        """Return the first read of the catalog that has changed, or that this round changes."""
        read = transaction.snapshot.catalog
        for now in (self.versions.newest.catalog, redefined):
            if now is None or now is read:
                continue
            if transaction.whole_catalog_seen:
                return Conflict("the catalog that was read has changed")
            for name, seen in transaction.names_seen.items():
                found = now.find(name)
                if found is not seen and found != seen:
                    return Conflict("a definition that was used has changed", table=name)
        return None

    def _second_phase(
        self,
        votes: list[FromShard],
        conflicts: list[Conflict | None],
        parts: dict[int, list[Part]],
    ) -> Round[Roots]:
        """Send decisions to the shards that still wait; return the new roots of all shards."""
        installed: Roots = {}
        decisions: dict[int, ToShard] = {}
        for vote in votes:
            if vote.roots is not None:
                installed |= vote.roots
            else:
                decisions[vote.shard] = self.decision(parts[vote.shard], conflicts)
        if decisions:
            for answer in (yield from self._asked(decisions)):
                assert answer.roots is not None
                installed |= answer.roots
        return installed

    def decision(self, parts: list[Part], conflicts: list[Conflict | None]) -> Decide:
        return Decide(
            self._round,
            tuple(
                part.position
                for part in parts
                if not part.alone and conflicts[part.position] is None
            ),
        )

    # --- a second round, of work that the coordinator runs ---

    def _run_all(self, commits: list[Commit]) -> Round[None]:
        """Run each commit's work on the newest state and the writes before it; install all."""
        snapshot = self._snapshot()
        writes: Writes = {}
        answers: Answers = []
        writers: list[Transaction] = []
        requests: list[str | None] = []
        for count, commit in enumerate(commits, start=1):
            transaction = Transaction(snapshot, writes)
            answer = self.run_work(commit, transaction)
            if transaction.notifications and type(answer) is Committed:
                self._tell(answers, answer, transaction)
            answers.append((commit.reply, answer))
            if type(answer) is Committed and (transaction.writes or transaction.notifications):
                if len(commits) == 1:
                    writes = transaction.writes
                else:
                    yield from merge_writes(writes, transaction.writes)
                writers.append(transaction)
                requests.append(commit.request_id)
            if count % WORK_BEFORE_YIELDING == 0 and count < len(commits):
                yield None
        if not writers:
            for reply, answer in answers:
                reply.put(answer)
            return
        self._round += 1
        parts = yield from unconditional_parts(writes, snapshot)
        votes = yield from self._asked(
            {shard: Prepare(self._round, (part,)) for shard, part in parts.items()}
        )
        self._commits += len(writers)
        if len(writers) > 1:
            self.writers.note(snapshot.version + 1, writers, requests)
        installed = yield from self._second_phase(votes, [], {})
        yield from self._publish(installed, [writes], (), answers, requests)

    def _snapshot(self) -> Snapshot:
        snapshot = self._snapshots.take(newest=True)
        if snapshot is None:
            raise EngineRestarted
        return snapshot

    def run_work(self, commit: Commit, transaction: Transaction) -> Answer:
        """Run the work here; return Conflicted if it is not short or changes the catalog."""
        assert commit.work is not None
        retried = commit.transaction is not None
        if commit.transaction is not None:
            self._rerun += 1
            transaction.retries = commit.transaction.retries + 1
        try:
            result = run_at_once(commit.work, transaction)
            for _ in transaction.load_written():
                pass  # there is not much: the work was short
        except WouldYield:
            return Conflicted(Conflict("the work is not short"))
        except Exception as error:  # a bug in one request's work must not end all others'
            return Failed(error, _version_of(transaction, wrote=False))
        if transaction.changes_catalog:
            return Conflicted(Conflict("the work changes the catalog"))
        version = _version_of(transaction, bool(transaction.writes or transaction.notifications))
        if ANSWERS_TREE in transaction.writes:
            stamp_answers(transaction, version)
        return Committed(version, retried, result)

    # --- publication ---

    def _tell(self, answers: Answers, committed: Committed, transaction: Transaction) -> None:
        """Have listeners told when the round is durable, before the one who tells them."""
        sent = transaction.notifications
        answers.append((self._channels.delivery(committed.version, sent), committed))

    def _publish(
        self,
        installed: Roots,
        deltas: Sequence[Writes],
        redefining: Iterable[Transaction],
        answers: Answers,
        requests: list[str | None],
    ) -> Round[None]:
        """Make the next snapshot the newest, and hand the round to the log."""
        writes: Writes = {}
        count = 0
        if len(deltas) == 1:
            writes, deltas = deltas[0], ()  # nobody changes it any more
        for changes in deltas:
            yield from merge_writes(writes, changes)
            count += count_changes(changes)
            if count > CHANGES_AT_ONCE:
                count = 0
                yield None
        snapshot, append, moves = self.next_round(installed, writes, redefining, answers, requests)
        self.versions.publish(snapshot)
        try:
            self._log.submit(append)
        except TooManyRequests:
            yield partial(self._log.wait_to_submit, append)
        if moves:
            self._layouts += 1
            yield from self._asked(moves)

    def next_round(
        self,
        installed: Roots,
        writes: Writes,
        redefining: Iterable[Transaction],
        answers: Answers,
        requests: list[str | None],
    ) -> tuple[Snapshot, Append, dict[int, Own]]:
        """Return the next snapshot, its log record, and changes of range ownership by shard."""
        newest = self.versions.newest
        catalog = newest.catalog
        dropped: tuple[int, ...] = ()
        catalog_changes: dict[str, Definition | None] = {}
        definitions: list[Definitions] = []
        for transaction in redefining:
            changes, beside_rows = transaction.catalog_changes, transaction.changes_rows
            definitions += [replace(each, beside_rows=beside_rows) for each in changes.notes]
            dropped += changes.dropped
            catalog_changes.update(changes.definitions)
            catalog = transaction.catalog
        version = newest.version + 1
        time = max(newest.time, self.versions.now())  # the clock may be set back, versions not
        if catalog_changes:
            catalog = catalog.dated(catalog_changes, (version, time))
        trees, moves = self._laid_out(installed, dropped, (version, time))
        snapshot = Snapshot(
            version,
            time,
            catalog,
            newest.trees.changed(trees, dropped),
            newest.shards,
            newest.lease,
        )
        append = Append(
            snapshot,
            writes,
            dropped,
            catalog_changes,
            tuple(answers),
            [each for each in requests if each is not None],
            definitions,
        )
        return snapshot, append, moves

    def _laid_out(
        self, installed: Roots, dropped: tuple[int, ...], at: Moment
    ) -> tuple[dict[int, RangedTree], dict[int, Own]]:
        """Return the changed trees, cut into ranges that fit, and the moves between shards."""
        newest = self.versions.newest
        trees: dict[int, RangedTree] = {}
        moves: dict[int, Own] = {}
        for number, roots in by_tree(installed).items():
            tree = trees[number] = newest.trees.tree(number).changed(roots, at)
            fits = True
            for each, root in roots.items():
                fits = fits and tree.fits(each, root)
            if not fits and number not in dropped:
                try:
                    trees[number] = tree.laid_out(newest.shards)
                except (DataCorrupted, LogFailed):
                    continue  # a page cannot be read now; ranges of any size serve as well
                self._note_moves(moves, tree, trees[number])
        return trees, moves

    def _note_moves(self, moves: dict[int, Own], before: RangedTree, after: RangedTree) -> None:
        had = set(before.ranges)
        given = {
            each: root
            for each, root in zip(after.ranges, after.roots, strict=True)
            if each not in had
        }
        for each in had.difference(after.ranges):
            own = moves.setdefault(each.shard, Own(self._round, [], {}))
            own.taken.append(each)
        for each, root in given.items():
            own = moves.setdefault(each.shard, Own(self._round, [], {}))
            own.given[each] = root

    def statistics(self) -> CoordinatorStatistics:
        return CoordinatorStatistics(
            self.versions.newest.version,
            self._round,
            self._commits,
            self._conflicts,
            self._rerun,
            self._exclusive,
            self._layouts,
        )

    def __repr__(self) -> str:
        return f"the coordinator at version {self.versions.newest.version}"


def _failing(error: Exception) -> Round[None]:
    """Return the rest of a round that failed where it was submitted; driving it raises."""
    raise error
    yield


def _shard_of(answer: FromShard) -> int:
    return answer.shard


def _version_of(transaction: Transaction, wrote: bool) -> int:
    """Return the version that has all that the work saw, and its own writes if they count."""
    return transaction.snapshot.version + bool(wrote or transaction.earlier)
