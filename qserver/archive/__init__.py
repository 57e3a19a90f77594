"""Continuous backup: the databases of a folder as objects, from which any moment is restored.

    objects.py      what is asked of the place       folder_objects.py, s3_objects.py   the places
    segments.py     the bytes of a segment           layout.py        names, and what a listing says
    watch.py        what is new in a data folder     basing.py        copies of whole files
    continuous.py   the two together, for ever       status.py        how far it is, for others
    reading.py      a generation, read and compared  rebuilding.py    a folder as it was at a moment
    listed.py       what the control database lists  owner.py        one process writes at a time

Start with `layout`.
"""
