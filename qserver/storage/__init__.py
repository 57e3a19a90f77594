"""Rows at rest: trees of immutable pages, and a transaction's reads and writes of them.

Everything in this room is a value. A tree or a snapshot never changes; a write makes a new root
that shares every untouched page with the old one. So a reader keeps a snapshot for as long as it
likes, without a lock, and two roots are compared at the cost of their difference. The room is pure:
no waiting, no clock, no chance, no file. It does not know SQL either.
"""
