"""Functions and operators of arrays."""
