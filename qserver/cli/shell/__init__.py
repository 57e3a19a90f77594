"""`qserver sql`: a shell, and the same for files and pipes.

    command.py ─┬─ prompt.py ── completion.py     a person types          ┐
                 └─ scripts.py ── progress.py      files, pipes, -c        ┴─► shell.py ─► client
                                                   \\d, \\l, \\x …: commands.py, describe.py

`Shell` runs one statement at a time and prints what comes back as it comes. It does not know where
statements are from, so a person and a file see the same.
"""

from __future__ import annotations
