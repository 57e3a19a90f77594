"""A real server as a process of its own, which keeps nothing."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

ROOT = Path(__file__).parent.parent.parent
KEY = "svc_k_0123456789abcdef0123"


@contextmanager
def real_server() -> Iterator[str]:
    """Its address. It has to end well when it is told to."""
    clean = {name: value for name, value in os.environ.items() if not name.startswith("QSERVER_")}
    process = subprocess.Popen(
        [sys.executable, "-m", "qserver", "serve", "--port", "0", "--data", ":memory:"],
        cwd=ROOT,
        env={**clean, "QSERVER_API_KEY": KEY},
        stderr=subprocess.PIPE,
        text=True,
    )
    with process:
        assert process.stderr is not None
        for line in process.stderr:
            found = re.search(r"http://[\d.:]+", line)
            if found is not None:
                yield found.group()
                break
        process.terminate()
        process.stderr.read()
        assert process.wait(30) == 0
