"""The graph algorithms of the checkers, each against its definition."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from simulations.checkers.graph import EdgeKind, Graph, Interval, strongly_connected


@pytest.mark.long
def test_real_time_is_reduced_to_a_chain_of_moments() -> None:
    for clients in (2, 8, 300):
        graph = Graph([Interval(10 * n, 10 * (n + clients - 1)) for n in range(500)])
        chain = graph.adjacency([EdgeKind.REALTIME])
        assert sum(map(len, chain.values())) < 3 * 500
        # Nothing is lost by it: what is before is what can be reached.
        reached: dict[int, set[int]] = {}
        for (node,) in strongly_connected(graph.nodes(), chain):
            direct = chain.get(node, ())
            reached[node] = set(direct).union(*(reached[successor] for successor in direct))
        for node in graph.nodes():
            later = {other for other in graph.nodes() if graph.precedes(node, other)}
            assert {other for other in reached[node] if other in graph.nodes()} == later


def test_a_path_does_not_jump_between_attempts_that_only_touch() -> None:
    graph = Graph([Interval(0, 5), Interval(5, 9), Interval(6, 7)])
    assert graph.shortest_path(0, 1, {2: [1]}, graph.nodes()) == [0, 2, 1]
    assert not graph.precedes(0, 1)


def test_deep_graphs_do_not_exhaust_the_stack() -> None:
    depth = 50_000
    chain = {node: [node + 1] for node in range(depth)}
    assert len(strongly_connected(range(depth + 1), chain)) == depth + 1
    assert strongly_connected(range(depth), {**chain, depth - 1: [0]}) == [list(range(depth))]


@settings(deadline=None)
@given(st.dictionaries(st.integers(0, 9), st.lists(st.integers(0, 9), max_size=3)))
def test_components_are_what_reaches_each_other_and_come_after_what_they_lead_to(
    successors: dict[int, list[int]],
) -> None:
    reachable = {node: {node} for node in range(10)}
    for _ in range(10):
        for node, nodes in reachable.items():
            nodes.update(*(reachable[successor] for successor in successors.get(node, ())))
    components = strongly_connected(range(10), successors)
    assert sorted(node for component in components for node in component) == list(range(10))
    place = {node: place for place, component in enumerate(components) for node in component}
    for one in range(10):
        for other in reachable[one]:
            assert place[other] <= place[one]
            assert (place[other] == place[one]) == (one in reachable[other])
