"""The project's own application, which is no package with an `__init__.py`."""

from __future__ import annotations

from pathlib import Path

from django.apps import AppConfig


class Library(AppConfig):
    name = "tests.django.project"
    label = "library"
    path = str(Path(__file__).parent)
