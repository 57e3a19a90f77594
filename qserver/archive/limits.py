"""The bounds of continuous backups that operators meet, and what holds where they say nothing."""

from __future__ import annotations

from typing import Final

BACKUP_EVERY_SECONDS_DEFAULT: Final = 1.0
"""How often changes are saved."""

BACKUP_EVERY_SECONDS_MIN, BACKUP_EVERY_SECONDS_MAX = 0.1, 3600.0
"""What `--every` may say."""

BACKUP_BASE_SECONDS_DEFAULT: Final = 24 * 3600
"""How often all files are copied again: what a restore has to read is bounded by that."""

BACKUP_KEEP_SECONDS_DEFAULT: Final = 7 * 24 * 3600
"""How far back moments can be restored."""

BACKUP_IDLE_SECONDS: Final = 30.0
"""A segment is saved so often also when nothing was written: it says that nothing was."""

BACKUP_SEGMENT_BYTES: Final = 8 << 20
"""About the bytes of records in one segment; one record may be longer."""

BACKUP_LAG_SECONDS_BAD: Final = 60.0
"""A backup that is so far behind, or has ended so long ago, is a problem for `qserver doctor`."""
