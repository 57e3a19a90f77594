"""Decides what goes wrong in a run, and how often.

Every place where something could go wrong asks `strikes(kind)`. Each question has a name,
`kind:count`, and its answer depends on the seed and that name alone. So a fault can be taken out of
a run without changing the others, which is what shrinking needs.

Profile `calm` has delays and nothing else. `swarm` switches each kind of fault on or off and
chooses how often it strikes, by the seed: rare combinations get room. `storm` has everything on at
once. Each finds what the others miss.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from random import Random
from typing import Final
from zlib import crc32

from simulations.sizes import FEED_VERSIONS, RETRY_SECONDS, Sizes, draw_sizes


@dataclass(frozen=True, slots=True)
class Profile:
    """How often things go wrong: probabilities by kind, and the shape of the run."""

    name: str
    shards: int = 3
    clients: int = 5
    transactions_per_client: int = 20
    shortened: bool = False
    """Whether the command line asked for fewer transactions than the seed would have."""
    max_retries: int = 4
    long_work: float = 0.3
    """How likely a piece of work yields while it runs."""
    commits_waiting_most: int = 64
    rounds_unsynced_most: int = 8
    delay_seconds: float = 0.002
    checkpoint_log_bytes: int = 2000
    checkpoint_seconds: float = 300.0
    checkpoint_pages_at_once: int = 2
    history: float = 0.0
    """For how many seconds older versions are kept."""
    cache_bytes: int = 1 << 30
    """The memory for pages; the least that one read needs is always there."""
    eager_log: bool = False
    """Whether the disk begins an append when it is called, or when it is awaited."""
    all_here: bool = False
    """Whether all that may be done where it is asked for is done there, whatever the seed says."""
    holds: bool = False
    """Whether snapshots are held open across checkpoints, see `holding`."""
    follows: bool = False
    """Whether another process follows the database, see `following`."""
    past: int = 0
    """How many versions a family of branches has when its clients begin, each with a checkpoint."""
    steps: int = 14
    """How many steps each client of a family takes."""
    steps_taken: tuple[str, ...] = ()
    """Which they are, if not all that there are."""
    sizes: Sizes = field(default_factory=Sizes)
    probabilities: dict[str, float] = field(default_factory=dict)


KINDS: Final = {
    "message_slow": 0.10,  # a message takes a hundred times as long as most
    "actor_killed": 0.004,  # at one of its await points
    "process_crash": 0.012,  # at an await point of any actor
    "sync_slow": 0.15,
    "sync_fails": 0.02,
    "checkpoint_fails": 0.05,  # when pages or the record of a checkpoint are saved
    "read_fails": 0.10,  # when the log is read to recover
    "recovery_crashes": 0.03,  # the process, while it reads the log
    "pages_let_go": 0.1,  # any of those that are saved, whenever a task waits
    "page_slow": 0.05,  # to be read
    "page_fails": 0.005,  # to be read
    "page_torn": 0.003,  # when it is read
    "tail_kept": 0.5,  # on a crash: some unsynced bytes are on the disk all the same
    "clock_jumps": 0.02,  # the wall clock, back or forth
    "work_slow": 0.02,  # time passes while a task runs
    "client_pauses": 0.05,
    "log_taken": 0.02,  # another process takes over, while this one goes on
    "client_leaves": 0.06,  # before it has its answer
}
"""Each kind of fault, with how often it strikes in a storm where it can."""

NODE_KINDS: Final = {
    "request_lost": 0.03,  # on its way to the nodes of a replicated log
    "request_late": 0.02,  # it arrives when its caller has given up, perhaps
    "answer_lost": 0.04,  # though it was done
    "commit_slow": 0.06,  # a message is proposed, and not committed for a while
    "election": 0.008,  # nothing is answered, and what was only proposed may vanish
    "read_lags": 0.1,  # the node that is asked lacks the newest messages
    "nodes_cut_off": 0.004,  # one process does not reach the nodes
    "process_paused": 0.01,  # at an await point, while the clock goes on
    "family_taken": 0.015,  # another process opens the family, while this one goes on
}
"""The same for replicated logs, see `stream` and `replicated`: other runs have no nodes."""

CLUSTER_KINDS: Final = {
    "node_paused": 0.004,  # at an await point, while its clock goes on
    "node_crashes": 0.02,  # and begins again with the same folder
    "node_leaves": 0.01,  # as one that is to be restarted
    "link_cut": 0.03,  # between two nodes
    "call_lost": 0.02,  # of a node to another, or the answer
    "values_lag": 0.05,  # the node of the log that is asked has older values
    "family_moved": 0.03,  # by hand
    "values_late": 0.02,  # the answer of a node of the log that was asked for them, or set them
    "life_outlived": 0.02,  # by a change of the placement, whose answer comes in the next life
}
"""The same for nodes that share families, see `nodes`: other runs have one node."""

PLANTED_KINDS: Final = ("acknowledged_forgotten", "acknowledged_replaced")
"""What nodes must never do: no profile has it, only tests that ask for it."""

ALL_KINDS: Final = frozenset((*KINDS, *NODE_KINDS, *CLUSTER_KINDS, *PLANTED_KINDS))

PROFILES: Final = ("calm", "swarm", "storm")


def make_profile(name: str, seed: int) -> Profile:
    chance = Random(f"profile {name} {seed}")
    shape = Profile(
        name,
        shards=chance.choice((1, 2, 3, 4, 4, 5)),
        clients=chance.choice((2, 4, 6, 8)),
        transactions_per_client=chance.choice((10, 16, 24)),
        max_retries=chance.choice((1, 1, 2, 4)),
        long_work=chance.choice((0.0, 0.2, 0.5, 0.9)),
        commits_waiting_most=chance.choice((3, 64, 64)),
        rounds_unsynced_most=chance.choice((1, 2, 8)),
        delay_seconds=chance.choice((0.0001, 0.001, 0.005)),
        checkpoint_log_bytes=chance.choice((1, 500, 3000, 1_000_000_000)),
        checkpoint_seconds=chance.choice((0.2, 300.0)),
        checkpoint_pages_at_once=chance.choice((1, 2, 64)),
        eager_log=chance.random() < 0.5,
        sizes=replace(
            draw_sizes(chance),
            retry_seconds=Random(f"pause {name} {seed}").choice(RETRY_SECONDS),
            feed_versions=Random(f"feed {name} {seed}").choice(FEED_VERSIONS),
        ),
        cache_bytes=chance.choice((1 << 30, 1 << 30, 100_000, 2_000)),
        history=chance.choice((0.0, 0.0, 0.5, 1e9)),
        holds=Random(f"holds {name} {seed}").random() < 0.4,
        follows=Random(f"follows {name} {seed}").random() < 0.2,
    )
    if name == "calm":
        return shape
    if name == "storm":
        return replace(shape, probabilities=KINDS | NODE_KINDS | CLUSTER_KINDS)
    assert name == "swarm", f"there is no profile {name}"
    of_nodes = Random(f"nodes {name} {seed}")
    of_clusters = Random(f"cluster {name} {seed}")
    of_others = _some(NODE_KINDS, of_nodes) | _some(CLUSTER_KINDS, of_clusters)
    return replace(shape, probabilities=_some(KINDS, chance) | of_others)


def _some(kinds: dict[str, float], chance: Random) -> dict[str, float]:
    return {
        kind: probability * chance.choice((0.3, 1.0, 3.0))
        for kind, probability in kinds.items()
        if chance.random() < 0.5
    }


class Faults:
    """Decides which faults strike, remembers them, and can be limited to some."""

    def __init__(
        self,
        seed: int,
        probabilities: dict[str, float],
        only: frozenset[str] | None = None,
    ) -> None:
        self._seed = seed
        self._probabilities = probabilities
        self._only = only
        self._counts: dict[str, int] = {}
        self.struck: list[str] = []
        self.on = False

    def strikes(self, kind: str) -> bool:
        """Return whether a fault of this kind strikes here and now."""
        assert kind in ALL_KINDS, f"no fault {kind}"
        probability = self._probabilities.get(kind, 0.0)
        if not self.on or probability == 0.0:
            return False
        count = self._counts[kind] = self._counts.get(kind, 0) + 1
        name = f"{kind}:{count}"
        if crc32(f"{self._seed} {name}".encode()) >= probability * 2**32:
            return False
        if self._only is not None and name not in self._only:
            return False
        self.struck.append(name)
        return True
