"""`qserver doctor`: looks at a deployment, and says what is well and what to change.

    command.py ─┬─ machine.py      disk syncs, clock, files, memory, versions
                ├─ folder.py       data folder, keys in files, backups
                ├─ exposure.py     settings by which others could come in
                ├─ certificate.py  the certificate and its key
                └─ server.py       a server that runs, by its URL

A check is a function that returns findings; it neither prints nor ends the program.
"""
