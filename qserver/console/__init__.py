"""The console: a page at `/console` for people, made of files that this room keeps.

    static/index.html ─► shell ─► sql, data, time, live, admin ─► core (requests, elements, values)
           style/*.css            one folder a part                grid (rows of any number)

What runs in the browser is what lies here: ES modules by hand, without a build step. Only the
editor is built, of CodeMirror, into one file (`static/vendor/`); `editor/` says how. The room knows
files and nothing of HTTP; `qserver.web.console` sends them.
"""

from qserver.console.page import ConsoleFile, build, console_file, page_file, security_policy

__all__ = ["ConsoleFile", "build", "console_file", "page_file", "security_policy"]
