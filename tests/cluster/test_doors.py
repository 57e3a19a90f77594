"""Doors: what knocks waits for whoever opens, and nothing is left behind."""

from __future__ import annotations

import resource

import pytest

from qserver.cluster import Doors
from qserver.cluster.doors import next_at_door
from tests.cluster.linked import made_doors, open_descriptors


def test_connections_wait_at_the_door_of_their_process_in_order() -> None:
    before = open_descriptors()
    with made_doors(3) as doors:
        for process in (1, 2, 1):
            with doors.knock(process) as near:
                near.sendall(b"%d" % process)
        for process, count in ((0, 0), (1, 2), (2, 1)):
            for _ in range(count):
                with next_at_door(doors.inside[process]) as far:
                    assert far.recv(9) == b"%d" % process
            with pytest.raises(BlockingIOError):
                next_at_door(doors.inside[process])
    assert open_descriptors() == before


def test_who_knocks_is_told_if_too_many_wait() -> None:
    before = open_descriptors()
    with made_doors(2) as doors:
        with pytest.raises(OSError):
            for _ in range(100_000):
                doors.knock(1).close()
        next_at_door(doors.inside[1]).close()
    assert open_descriptors() == before


def test_a_connection_for_which_there_is_no_descriptor_is_lost_and_told() -> None:
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    with made_doors(2) as doors, doors.knock(1) as near:
        resource.setrlimit(resource.RLIMIT_NOFILE, (near.fileno(), hard))
        try:
            with pytest.raises(OSError, match="too many files"):
                next_at_door(doors.inside[1])
        finally:
            resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))
        assert near.recv(1) == b"", "the other end is closed"


def test_a_process_keeps_the_inside_of_its_own_door() -> None:
    doors = Doors(3)
    assert doors.keep(1) is doors.inside[1] and [*doors.inside] == [1]
    doors.close()
