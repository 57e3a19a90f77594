"""The process: how it starts and ends, what it measures, and who watches it."""
