"""Runs cells as a notebook does: reads them as a list in JSON, and writes what each shows."""

import json
import re
import sys

from IPython.core.interactiveshell import InteractiveShell
from IPython.utils.capture import capture_output

PROMPT = re.compile(r"^Out\[\d+\]: ?\n?", re.MULTILINE)

shell = InteractiveShell.instance(colors="nocolor")
shown = []
for cell in json.load(sys.stdin):
    with capture_output() as captured:
        done = shell.run_cell(cell, store_history=True)  # type: ignore[no-untyped-call]
    if not done.success:
        sys.exit(f"{cell}\n{captured.stdout}{captured.stderr}{done.error_in_exec}")
    shown.append(PROMPT.sub("", captured.stdout))
print(json.dumps(shown))
