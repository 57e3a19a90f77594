"""Planted bugs in bases of replicated logs: manifests, parts, purges, and files that are loaded."""

from __future__ import annotations

from typing import Final

from qserver.replication.bases import Bases
from qserver.replication.copies import Copies
from simulations.mutants.mutant import Mutant, edited
from simulations.mutants.replicated import HOSTS
from simulations.sizes import SMALL

OFTEN: Final = (("sizes", SMALL),)
"""A base is made whenever the last one is done."""

WHOLE: Final = """if name in self._unfinished or not await self.files.has_file(name):
        return False
    copying = self._copied[name] = _Copying(trio.CancelScope(), trio.Event())
    try:
        with copying.scope:
            async with self.hold(name) as own:
                if is_branch and not await own.load_outlines():"""
IN_PART: Final = """if not await self.files.has_file(name):
        return False
    copying = self._copied[name] = _Copying(trio.CancelScope(), trio.Event())
    try:
        with copying.scope:
            async with self.hold(name) as own:
                if False:"""

MUTANTS: Final = (
    Mutant(
        "purge_beyond_the_manifest",
        "the stream is purged up to where it is now, and not to where the base is",
        HOSTS,
        (
            edited(
                Bases.make,
                "family.stream.purge, position.sequence",
                "family.stream.purge, family.position.sequence",
            ),
        ),
        OFTEN,
    ),
    Mutant(
        "purge_before_the_manifest",
        "the stream is purged when the parts are saved, before the manifest names them",
        HOSTS,
        (
            edited(
                Bases.make,
                "manifest = Manifest(name, position, files)\n",
                "manifest = Manifest(name, position, files)\n"
                "    await self._ask(root, family.stream.purge, position.sequence)\n",
            ),
        ),
        OFTEN,
    ),
    Mutant(
        "let_the_manifest_go_back",
        "a maker that was slow sets its manifest in place of a newer one",
        HOSTS,
        (
            edited(
                Bases._set,
                "if found.position.sequence >= manifest.position.sequence",
                "if found.position.sequence == manifest.position.sequence",
            ),
        ),
        OFTEN,
    ),
    Mutant(
        "copy_a_branch_that_is_made_in_part",
        "a base has the file of a branch as it is while it is being made",
        HOSTS,
        (edited(Copies.copy, WHOLE, IN_PART),),
        OFTEN,
    ),
    Mutant(
        "copy_branches_before_their_parents",
        "a branch is copied first, and its parent when it has let go of what the branch needs",
        HOSTS,
        (
            edited(
                Bases.make,
                "for each in (root, *(each for each in position.versions if each != root)):",
                "for each in (*(each for each in position.versions if each != root), root):",
            ),
        ),
        OFTEN,
    ),
    Mutant(
        "load_a_base_without_its_pins",
        "files that are loaded keep no checkpoint for the branches of the base",
        HOSTS,
        (
            edited(
                Bases.load, "unpin_others(own, manifest.position.versions)", "unpin_others(own, ())"
            ),
        ),
        OFTEN,
    ),
    Mutant(
        "keep_pins_of_the_copied_machine",
        "files that are loaded keep checkpoints for branches that are not in the base",
        HOSTS,
        (edited(Bases.load, "await unpin_others(own, manifest.position.versions)", "pass"),),
        OFTEN,
    ),
    Mutant(
        "load_a_base_with_the_copied_position",
        "the root's file has the position of the machine that it is a copy of",
        HOSTS,
        (
            edited(
                Bases.load,
                "position_page(BEGINNING) if file.name == root else None",
                "None",
            ),
        ),
        OFTEN,
    ),
    Mutant(
        "take_a_lagging_node_for_a_loss",
        "a part that the node which is asked does not have yet is taken for lost",
        HOSTS,
        (edited(Bases._part, "if asked > began + LAG_SECONDS:", "if True:"),),
        OFTEN,
    ),
    Mutant(
        "keep_files_of_branches_that_are_gone",
        "a host does not remove files of databases that others have removed",
        HOSTS,
        (edited(Copies.remove_gone, "await self.remove_file(name)", "pass"),),
        OFTEN,
    ),
)
