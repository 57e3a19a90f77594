"""`qserver serve`: turns flags and environment into settings, and runs the server."""

from __future__ import annotations

import argparse
import os

from qserver.cli.continuous.beside import backing_up
from qserver.config import SETTINGS, load
from qserver.web.service.serving import serve


def run(options: argparse.Namespace) -> int:
    given = {each.field: getattr(options, each.field) for each in SETTINGS if each.field}
    flags = {field: text for field, text in given.items() if text is not None}
    settings = load(os.environ, flags)
    with backing_up(settings):
        return serve(settings)
