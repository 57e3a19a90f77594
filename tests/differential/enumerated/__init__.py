"""Statements that are written out: every form of a thing in every place where it can stand.

Random programs find what nobody has thought of; they reach a rare form in a rare place seldom. Here
short lists are multiplied, so a form that is added is tried in all places at once. A module has
`GRIDS`: what makes a database, and the statements that are tried on it, in order.
"""
