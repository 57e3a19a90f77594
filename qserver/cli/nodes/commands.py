"""The commands of `qserver cluster` that are about nodes, by name."""

from __future__ import annotations

from typing import Final

from qserver.cli.nodes.placing import run_drain, run_move
from qserver.cli.nodes.status import run_status
from qserver.cli.nodes.up import run_up

COMMANDS: Final = {"up": run_up, "status": run_status, "move": run_move, "drain": run_drain}
