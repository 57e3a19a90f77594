"""Arithmetic and mathematics over integers, floats and numerics, and numbers as text."""
