"""How tests are shared out to processes: file by file, but for folders that go to one process.

Such a folder has servers for all of its tests. To start them takes longer than most files, and each
process that ran one of its files would start them.
"""

from __future__ import annotations

from typing import Final

import pytest
from xdist.remote import Producer
from xdist.scheduler import LoadFileScheduling

UNDIVIDED: Final = ("tests/web/contract/",)


class Shares(LoadFileScheduling):  # type: ignore[misc]  # xdist has no types
    """What is given to a process at a time: the tests of a file, or of a folder."""

    def _split_scope(self, nodeid: str) -> str:
        folder = next((each for each in UNDIVIDED if nodeid.startswith(each)), None)
        return nodeid.split("::", 1)[0] if folder is None else folder


class Sharing:
    """A plugin for the process that has others run the tests."""

    def pytest_xdist_make_scheduler(
        self, config: pytest.Config, log: Producer
    ) -> LoadFileScheduling | None:
        return Shares(config, log) if config.getoption("dist") == "loadfile" else None
