"""`qserver sql`: a shell as psql is one, and the same for files and pipes.

    command.py ─┬─ prompt.py ── completion.py     a person types          ┐
                └─ scripts.py ── progress.py      files, pipes, -c        ┴─► shell.py ─► client
                                                                               │
    commands/   what begins with a backslash ── catalog/   \\d and its kin     │
    variables.py, conditions.py, arguments.py   what scripts need              ▼
    layouts/ ◄── printing.py ◄── output.py      how results look, and where they go

`Shell` runs one statement at a time and prints its result as it arrives. It does not know the
source of a statement, so a person and a file see the same. Every request is a session of its own:
`session_settings.py` carries on what SET has changed.
"""

from __future__ import annotations
