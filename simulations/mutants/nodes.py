"""Planted bugs in nodes that share families: leases, proofs, releases, placements, admissions."""

from __future__ import annotations

from typing import Any, Final

from qserver.control.barrier import Barrier
from qserver.control.nodes.handover import Handover
from qserver.control.nodes.lease import Seen
from qserver.control.nodes.membership import Membership
from qserver.control.nodes.node import Admission
from simulations.control_part import ControlPart
from simulations.mutants.mutant import Mutant, edited
from simulations.nodes import NODES
from simulations.registers import Registers

SHARED: Final = (NODES,)
EAGER: Final = (
    (
        "probabilities",
        {
            "node_paused": 0.003,
            "node_crashes": 0.01,
            "family_moved": 0.15,
            "link_cut": 0.03,
            "nodes_cut_off": 0.005,
            "call_lost": 0.05,
            "values_lag": 0.2,
        },
    ),
)
"""Nodes stand still and lose their leases all the time, and families move."""
STILL: Final = (("probabilities", {"node_paused": 0.004}),)
"""Nodes only stand still: often for longer than a lease, and come back."""


def _always(original: Any) -> property:
    return property(lambda self: True)


MUTANTS: Final = (
    Mutant(
        "count_a_lease_from_its_answer",
        "a lease holds from when its renewal was answered, not from when it was sent",
        SHARED,
        (
            edited(
                Membership._renew_if_due,
                "self.lease.extend(sent)",
                "self.lease.extend(self.lease.clock())",
            ),
        ),
        STILL,
    ),
    Mutant(
        "challenge_a_lease_that_is_renewed",
        "a challenger counts from when it saw a node first, not from the last renewal",
        SHARED,
        (
            edited(
                Membership.look,
                "Seen(facts, value.revision, now)",
                "Seen(facts, value.revision, now if before is None else before.since)",
            ),
        ),
    ),
    Mutant(
        "challenge_without_a_margin",
        "a lease is over for others as soon as it is for a clock as fast as theirs",
        SHARED,
        (edited(Seen.is_over, "self.facts.lease_seconds * MARGIN", "self.facts.lease_seconds"),),
        STILL,
    ),
    Mutant(
        "show_a_copy_in_the_next_life",
        "an admission holds with the lease of any life, not with that of its own",
        SHARED,
        (edited(Admission.holds, "self._lease.holds()", "self._node.membership.lease.holds()"),),
        EAGER,
    ),
    Mutant(
        "open_without_a_release",
        "a family is opened though others have not given it up",
        SHARED,
        (edited(Handover.may_open, "if await self._is_released(root, version)", "if version"),),
    ),
    Mutant(
        "own_before_the_placement_is_written",
        "a new life goes by a placement from before it began",
        SHARED,
        ((Membership, "is_current", _always),),
        EAGER,
    ),
    Mutant(
        "answer_a_release_before_the_family_is_closed",
        "a family is given up, and others open it while requests still use it",
        SHARED,
        (edited(Handover.release, "await trio.sleep(AGAIN_SECONDS)", "return"),),
        EAGER,
    ),
    Mutant(
        "admit_without_asking",
        "a node that has joined shows its copy of control before the leader counts it",
        SHARED,
        (
            edited(
                Admission.ask,
                'found: int = await owners.ask(owners.leader, "admit", version)',
                "found = 0",
            ),
        ),
        EAGER,
    ),
    Mutant(
        "forget_a_node_in_the_barrier",
        "a change of control is answered when all nodes have it but the last",
        SHARED,
        (edited(Barrier.behind, "in self._others()", "in list(self._others())[:-1]"),),
    ),
    Mutant(
        "count_a_copy_that_is_not_shown",
        "a new leader is told what the next copy has while the one before is shown",
        SHARED,
        (edited(ControlPart._follow_leader, "copy.admission.hide()", "pass"),),
        EAGER,
    ),
    Mutant(
        "claim_after_the_lease",
        "a node that has paused claims a family though its lease has ended meanwhile",
        SHARED,
        (edited(Registers._open, "check_right(may_claim)", "pass"),),
        EAGER,
    ),
)
