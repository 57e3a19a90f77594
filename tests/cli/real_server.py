"""A real server as a process of its own."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

ROOT = Path(__file__).parent.parent.parent
KEY = "svc_k_0123456789abcdef0123"


@contextmanager
def real_server(
    data: str | Path = ":memory:", environment: Mapping[str, str] | None = None
) -> Iterator[str]:
    """Its address. It has to end well when it is told to."""
    clean = {name: value for name, value in os.environ.items() if not name.startswith("QSERVER_")}
    process = subprocess.Popen(
        [sys.executable, "-m", "qserver", "serve", "--port", "0", "--data", str(data)],
        cwd=ROOT,
        env={**clean, **(environment or {}), "QSERVER_API_KEY": KEY},
        stderr=subprocess.PIPE,
        text=True,
    )
    with process:
        assert process.stderr is not None
        try:
            found = None
            while found is None:
                line = process.stderr.readline()
                assert line, "it has ended"
                found = re.search(r"http://[\d.:]+", line)
            yield found.group()
        finally:
            process.terminate()
            process.stderr.read()
    assert process.returncode == 0
