"""Programs that measure one package each: `python -m qserver.benchmarks.storage` and so on."""
