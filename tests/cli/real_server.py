"""A real server as a process of its own."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from signal import SIGTERM

from tests.forked import Forked

ROOT = Path(__file__).parent.parent.parent
KEY = "svc_k_0123456789abcdef0123"


@contextmanager
def real_server(
    data: str | Path = ":memory:",
    environment: Mapping[str, str] | None = None,
    said: list[str] | None = None,
) -> Iterator[str]:
    """Its address. It has to end well when it is told to.

    An environment may say which libraries it loads, so it then begins with an interpreter. `said`
    gets every line that it writes.
    """
    clean = {name: value for name, value in os.environ.items() if not name.startswith("QSERVER_")}
    clean |= {**(environment or {}), "QSERVER_API_KEY": KEY}
    arguments = ["serve", "--port", "0", "--data", str(data)]
    reading, writing = os.pipe()
    process: Forked | subprocess.Popen[bytes]
    if environment is None:
        process = Forked(arguments, ROOT, clean, writing)
    else:
        command = [sys.executable, "-m", "qserver", *arguments]
        process = subprocess.Popen(command, cwd=ROOT, env=clean, stdout=writing, stderr=writing)
    os.close(writing)
    with os.fdopen(reading) as output:
        try:
            found = None
            while found is None:
                line = output.readline()
                assert line, "it has ended"
                if said is not None:
                    said.append(line)
                found = re.search(r"http://[\d.:]+", line)
            yield found.group()
        finally:
            process.send_signal(SIGTERM)
            rest = output.read()
            if said is not None:
                said += rest.splitlines()
            process.wait()
    assert process.returncode == 0
