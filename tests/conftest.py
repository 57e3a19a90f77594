"""What holds for all tests: they may be as slow as the machine that they run on."""

from __future__ import annotations

from hypothesis import HealthCheck, settings

settings.register_profile(
    "any machine", deadline=None, suppress_health_check=(HealthCheck.too_slow,)
)
settings.load_profile("any machine")
