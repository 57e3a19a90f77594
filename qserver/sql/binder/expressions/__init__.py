"""Expressions: operators, calls, rows, subqueries, and the types that they take."""
