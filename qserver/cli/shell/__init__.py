"""`qserver sql`: a shell, and the same for files and pipes.

    command.py ─┬─ prompt.py ── completion.py     a person types          ┐
                └─ scripts.py ── progress.py      files, pipes, -c        ┴─► shell.py ─► client
                                                  \\d, \\l, \\x …: commands.py, describe.py

`Shell` runs one statement at a time and prints its result as it arrives. It does not know the
source of a statement, so a person and a file see the same.
"""

from __future__ import annotations
