"""The settings of Django's own tests; the databases are as `running.py` says."""

from __future__ import annotations

import os

from tests.django.suite.databases import PREPARED


def _database(name: str) -> dict[str, object]:
    return {
        "ENGINE": "django.db.backends.postgresql",
        "HOST": os.environ["SUITE_HOST"],
        "PORT": os.environ["SUITE_PORT"],
        "USER": os.environ["SUITE_USER"],
        "PASSWORD": os.environ["SUITE_PASSWORD"],
        "NAME": name,
        "TEST": {"NAME": name},
    }


DATABASES = {alias: _database(name) for alias, name in PREPARED.items()}
SECRET_KEY = "of a test"
PASSWORD_HASHERS = ["django.contrib.auth.hashers.MD5PasswordHasher"]
DEFAULT_AUTO_FIELD = "django.db.models.AutoField"
USE_TZ = False
