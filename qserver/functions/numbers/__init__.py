"""Arithmetic and mathematics over integers, floats and numerics; to_char and to_number."""
