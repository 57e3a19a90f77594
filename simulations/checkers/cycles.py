"""Finds circles in the graph of an entire history, and names a short one of each component.

The name of a circle depends on the edges it cannot do without, so the graph is searched six times,
each time with more kinds of edges:

    ww              G0                      ww + realtime            G0-realtime
    ww wr           G1c                     ww wr + realtime         G1c-realtime
    ww wr rw        G-single, G2            ww wr rw + realtime      G-single-realtime, G2-realtime

The first search that shows a strongly connected component reports it. A later search with all of
those edges finds it again, larger, and skips it: it says nothing new, and real time soon ties half
of a history together. So a reported component has no circle with fewer kinds of edges, and every
circle in it needs one of the kind that was added last.

One rw is enough (G-single) if some rw edge has a way back without any other. Without rw the
component has no circles, so that is reachability in an ordered graph, computed for many edges at a
time, one bit each, in a single pass from the last node to the first.

A history without anomalies needs only the largest search.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass
from itertools import islice, pairwise
from typing import Final

from simulations.checkers.graph import EdgeKind, Evidence, Graph, strongly_connected

WW, WR, RW, REALTIME = EdgeKind.WW, EdgeKind.WR, EdgeKind.RW, EdgeKind.REALTIME

LOOKS: Final = (
    ((WW,), "G0"),
    ((WW, WR), "G1c"),
    ((WW, WR, RW), "G2"),
    ((WW, REALTIME), "G0-realtime"),
    ((WW, WR, REALTIME), "G1c-realtime"),
    ((WW, WR, RW, REALTIME), "G2-realtime"),
)

# Where two nodes have several edges, the weakest claim that carries the circle is shown.
SHOWN_FIRST: Final = (WW, WR, REALTIME, RW)

# How many starting points are tried for a circle shorter than the first that was found.
STARTS_MAX: Final = 32
# How many rw edges are followed at once, one bit each.
BATCH: Final = 1024


@dataclass(frozen=True, slots=True)
class Hop:
    """One edge of a circle; real time needs no evidence."""

    source: int
    kind: EdgeKind
    evidence: Evidence | None
    target: int


@dataclass(frozen=True, slots=True)
class Cycle:
    """A named circle of hops, each beginning where the one before it ends."""

    name: str
    hops: tuple[Hop, ...]


def find_cycles(graph: Graph) -> list[Cycle]:
    """Return a short circle of every component, named by the first search that shows it."""
    everything, _ = LOOKS[-1]
    suspects = _knotted(graph, everything, graph.nodes())
    nodes = [node for component in suspects for node in component]
    if not nodes:
        return []
    found: list[Cycle] = []
    reported: list[tuple[frozenset[EdgeKind], frozenset[int]]] = []
    for kinds, label in LOOKS:
        covered = [within for smaller, within in reported if smaller <= frozenset(kinds)]
        for component in _knotted(graph, kinds, nodes):
            if any(not within.isdisjoint(component) for within in covered):
                continue
            reported.append((frozenset(kinds), frozenset(component)))
            found.append(_cycle_of(graph, kinds, label, component))
    return found


def _knotted(graph: Graph, kinds: Collection[EdgeKind], nodes: Collection[int]) -> list[list[int]]:
    """Return the components of more than one node, in the order of their first nodes."""
    within = None if len(nodes) == len(graph.nodes()) else nodes
    components = [
        [node for node in component if node in graph.nodes()]  # moments lie between attempts
        for component in strongly_connected(nodes, graph.adjacency(kinds, within))
        if len(component) > 1
    ]
    return sorted(components)


def _cycle_of(graph: Graph, kinds: Sequence[EdgeKind], label: str, component: list[int]) -> Cycle:
    if RW in kinds:
        others = tuple(kind for kind in kinds if kind is not RW)
        path = _with_one_rw(graph, others, component)
        if path is not None:
            first, rest = _hops(graph, (RW,), path[:2]), _hops(graph, others, path[1:])
            return Cycle(label.replace("G2", "G-single"), _without_hubs(graph, first + rest))
    path = _short_circle(graph, kinds, component)
    return Cycle(label, _without_hubs(graph, _hops(graph, kinds, path)))


def _short_circle(graph: Graph, kinds: Collection[EdgeKind], component: list[int]) -> list[int]:
    """Return the shortest circle through one of the first nodes of the component."""
    starts = [node for node in component if not graph.is_hub(node)][:STARTS_MAX]
    paths = _paths(graph, kinds, component, ((start, start) for start in starts))
    return min(paths, key=len)


def _with_one_rw(
    graph: Graph, others: Collection[EdgeKind], component: list[int]
) -> list[int] | None:
    """Return a short circle that begins with an rw edge and has no other; None if there is none."""
    inside = frozenset(component)
    edges = [
        (source, target)
        for source, target in graph.evidence[RW]
        if source in inside and target in inside
    ]
    hits = list(islice(_with_a_way_back(graph, others, component, edges), STARTS_MAX))
    ways_back = _paths(graph, others, component, ((target, source) for source, target in hits))
    shortest = min(ways_back, key=len, default=None)
    return None if shortest is None else [shortest[-1], *shortest]


def _with_a_way_back(
    graph: Graph,
    others: Collection[EdgeKind],
    component: list[int],
    edges: Sequence[tuple[int, int]],
) -> Iterator[tuple[int, int]]:
    """Yield those edges whose target leads to their source, along edges of the other kinds."""
    successors = graph.adjacency(others, component)
    last_to_first = [node for (node,) in strongly_connected(component, successors)]
    for begin in range(0, len(edges), BATCH):
        batch = edges[begin : begin + BATCH]
        sources = dict.fromkeys(source for source, _ in batch)
        bits = {source: 1 << place for place, source in enumerate(sources)}
        reached: dict[int, int] = {}
        for node in last_to_first:
            mask = bits.get(node, 0)
            for successor in successors.get(node, ()):
                mask |= reached[successor]
            reached[node] = mask
        yield from (edge for edge in batch if reached[edge[1]] & bits[edge[0]])


def _paths(
    graph: Graph,
    kinds: Collection[EdgeKind],
    component: list[int],
    ends: Iterator[tuple[int, int]],
) -> Iterator[list[int]]:
    """Yield a shortest path for each pair of ends, until one cannot be made shorter."""
    successors = graph.adjacency([kind for kind in kinds if kind is not REALTIME], component)
    realtime_among = component if REALTIME in kinds else ()
    for start, goal in ends:
        path = graph.shortest_path(start, goal, successors, realtime_among)
        yield path
        if len(path) == (3 if start == goal else 2):
            return


def _hops(graph: Graph, kinds: Collection[EdgeKind], path: Sequence[int]) -> list[Hop]:
    return [_hop(graph, kinds, source, target) for source, target in pairwise(path)]


def _hop(graph: Graph, kinds: Collection[EdgeKind], source: int, target: int) -> Hop:
    for kind in SHOWN_FIRST:
        if kind not in kinds:
            continue
        if kind is REALTIME:
            if graph.precedes(source, target):
                return Hop(source, kind, None, target)
        elif (source, target) in graph.evidence[kind]:
            return Hop(source, kind, graph.evidence[kind][source, target], target)
    raise AssertionError(f"no edge from {source} to {target}")


def _without_hubs(graph: Graph, hops: Sequence[Hop]) -> tuple[Hop, ...]:
    """Join the way into a hub and the way out of it into the one edge that they stand for."""
    joined: list[Hop] = []
    for hop in hops:
        if graph.is_hub(hop.source):
            into = joined.pop()
            assert into.evidence is not None and hop.evidence is not None
            evidence = into.evidence._replace(value=hop.evidence.value)
            joined.append(Hop(into.source, into.kind, evidence, hop.target))
        else:
            joined.append(hop)
    return tuple(joined)
