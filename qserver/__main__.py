"""`python -m qserver` is the command `qserver`."""

from __future__ import annotations

import sys

from qserver.cli import main

sys.exit(main())
