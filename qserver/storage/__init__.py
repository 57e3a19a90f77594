"""Rows at rest: trees of immutable pages, and what a transaction may do to them.

Everything in this room is a value. A tree or a snapshot is never changed; a write makes a new root
that shares every untouched page with the old one. So whoever holds a snapshot reads it for as long
as they like, without a lock, and two roots are compared at the cost of their difference. The room
is pure: no waiting, no clock, no chance, no file. It does not know SQL either.
"""
