"""Judges of a history: each takes what the clients saw and reports what no correct database can do.

    serializability   list-append histories: infers which attempt precedes which, finds circles
    registers         histories of plain reads and writes, judged by the versions they report

Invariant: a verdict is a function of the history. No checker looks at the database, a clock or
chance, and no order of a set leaks out, so a kept history gets the same words in every process.
"""
