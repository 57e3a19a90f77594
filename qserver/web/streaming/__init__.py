"""Answers that go on: streams of rows, live queries and feeds of changes."""
