"""Aggregates, ordered-set aggregates and statistics."""
