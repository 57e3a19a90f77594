"""SQLAlchemy's plugin of pytest: it takes --dburi and --requirements."""

from __future__ import annotations

import pytest
from sqlalchemy.testing import asserts

pytest.register_assert_rewrite("sqlalchemy.testing.assertions")
assert asserts

from sqlalchemy.testing.plugin.pytestplugin import *  # noqa: E402, F403
