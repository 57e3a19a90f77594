"""Requests that run statements: queries, transactions, open ones, and their answers."""
