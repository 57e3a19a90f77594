"""Planted bugs in nodes that share families: leases, proofs, releases, placements, admissions."""

from __future__ import annotations

from typing import Any, Final

from qserver.control.barrier import Barrier
from qserver.control.nodes.handover import Handover
from qserver.control.nodes.lease import Seen
from qserver.control.nodes.membership import Membership
from qserver.control.nodes.node import Admission
from simulations.cluster import Process
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
LAGGING: Final = (
    (
        "probabilities",
        {"node_leaves": 0.05, "node_crashes": 0.01, "family_moved": 0.2, "values_lag": 0.3},
    ),
)
"""Nodes leave and come back, families move, and who reads values often finds older ones."""
OUTLIVED: Final = (
    (
        "probabilities",
        {"node_crashes": 0.02, "life_outlived": 0.3, "family_moved": 0.03, "values_lag": 0.2},
    ),
)
"""Lives end before they hear of the placement that they have written."""
RETURNING: Final = (("probabilities", {"node_crashes": 0.03, "values_late": 0.1}),)
"""Nodes crash and come back, while others are slow to take them out."""
LEAVING: Final = (("probabilities", {"node_leaves": 0.1, "values_late": 0.3, "link_cut": 0.1}),)
"""Nodes leave slowly, without hearing from others, and come back."""
MOVING: Final = (("probabilities", {"node_crashes": 0.03, "family_moved": 0.3}),)
"""Families move from and to nodes that have come back."""
UNHEARD: Final = (("probabilities", {"family_moved": 0.1, "call_lost": 0.5}),)
"""Families move, and nodes seldom hear each other: values have to say what is given up."""

ENDS: Final = "seen.revision = await self._nodes.set_value(key, data, seen.revision)"
ENDS_WHATEVER: Final = """try:
        seen.revision = await self._nodes.set_value(key, data, seen.revision)
    except Refused as refused:
        seen.revision = await self._nodes.set_value(key, data, refused.last)"""


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
    Mutant(
        "test_the_lease_before_a_wait",
        "a read tests the lease, waits, and then shows what there is",
        SHARED,
        (
            edited(
                Process.serve,
                "found = register.take()",
                "may_show = register.may_show()\n"
                "        await self.machine.gate()\n"
                "        found = register.show() if may_show else None",
            ),
        ),
        STILL,
    ),
    Mutant(
        "end_a_lease_that_was_renewed",
        "a lease is ended whatever its revision, so also one that its holder has renewed",
        SHARED,
        (edited(Membership._end, ENDS, ENDS_WHATEVER),),
        EAGER,
    ),
    Mutant(
        "prove_an_end_by_a_read",
        "a node counts as ended if its value says so where it is read",
        SHARED,
        (
            edited(
                Membership.has_ended,
                "await self._end(seen)",
                "await self.look()\n        return self.seen[number].facts.is_ended",
            ),
        ),
        LAGGING,
    ),
    Mutant(
        "own_by_a_placement_of_another_life",
        "a placement that an earlier life wrote counts for the one that has begun meanwhile",
        SHARED,
        (
            edited(
                Membership._change,
                "if life is not None and life == self._begun:\n"
                "                self._current = life",
                "self._current = self._begun",
            ),
        ),
        OUTLIVED,
    ),
    Mutant(
        "take_out_a_node_that_has_come_back",
        "a node is taken out of the placement though it has begun another life and joined",
        SHARED,
        (edited(Membership._take_out, "prove=prove", "prove=trio.lowlevel.checkpoint"),),
        RETURNING,
    ),
    Mutant(
        "say_that_all_is_given_up",
        "with each renewal a node says that it has nothing of others, whatever it still has",
        SHARED,
        (edited(Handover.released, "self._families.families()", "[]"),),
        UNHEARD,
    ),
    Mutant(
        "keep_a_proof_for_later_placements",
        "an end that was proved under one placement counts under the next, too",
        SHARED,
        (
            edited(
                Handover._is_free, "self._proved.get(node, -1) >= version", "node in self._proved"
            ),
        ),
        MOVING,
    ),
    Mutant(
        "show_a_copy_while_leaving",
        "a node that is out of the placement shows its copy of control until its life ends",
        SHARED,
        (edited(Admission.holds, " and not self._node.is_leaving", ""),),
        LEAVING,
    ),
)
