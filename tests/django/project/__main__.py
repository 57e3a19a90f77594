"""manage.py of the project; `try_all` is its whole life in one process, which begins slowly.

DATABASE_URL=postgresql://… python -m tests.django.project migrate
"""

from __future__ import annotations

import importlib
import os
import sys
from io import StringIO

import django
from django.core.management import call_command, execute_from_command_line
from django.test.utils import setup_test_environment

APPLICATIONS = ("admin", "library", "auth", "contenttypes", "sessions")


def said(*command: str) -> str:
    out = StringIO()
    call_command(*command, stdout=out, no_color=True)
    return out.getvalue()


def try_all() -> None:
    """From no tables to none: makemigrations needs a package `made` that is empty."""
    from tests.django.project.checks import CHECKS

    said("makemigrations", "library")
    importlib.invalidate_caches()
    said("migrate")
    assert "No changes detected" in said("makemigrations", "--check")
    assert "No migrations to apply" in said("migrate")
    for _ in range(2):
        for check in CHECKS:
            check()
            print(check.__name__)
        said("flush", "--noinput")
    print(said("inspectdb"))
    for application in APPLICATIONS:
        said("migrate", application, "zero")
    left = [line for line in said("inspectdb").splitlines() if line.startswith("class ")]
    assert left == ["class DjangoMigrations(models.Model):"], left


if __name__ == "__main__":
    os.environ["DJANGO_SETTINGS_MODULE"] = "tests.django.project.settings"
    if sys.argv[1] == "try_all":
        django.setup()
        setup_test_environment()
        try_all()
    else:
        execute_from_command_line(sys.argv)
