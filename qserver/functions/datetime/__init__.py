"""Dates, times and intervals: arithmetic, fields, patterns, series."""
