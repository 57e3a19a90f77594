"""`qserver serve`: turns flags and environment into settings, and runs the server."""

from __future__ import annotations

import argparse
import os

from qserver.config import SETTINGS, load
from qserver.web.service.serving import serve


def run(options: argparse.Namespace) -> int:
    given = {each.field: getattr(options, each.field) for each in SETTINGS if each.field}
    flags = {field: text for field, text in given.items() if text is not None}
    return serve(load(os.environ, flags))
