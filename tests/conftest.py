"""What holds for all tests: they may be as slow as the machine that they run on."""

from __future__ import annotations

from hypothesis import HealthCheck, settings

from qserver.sql.vectors.loading import load

settings.register_profile(
    "any machine", deadline=None, suppress_health_check=(HealthCheck.too_slow,)
)
settings.load_profile("any machine")

load()  # so that a first plan over vectors is made as later ones are, whichever test comes first
