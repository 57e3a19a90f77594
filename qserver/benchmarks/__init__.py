"""Programs that measure one room each: `python -m qserver.benchmarks.storage` and so on."""
