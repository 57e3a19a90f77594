"""The settings of a session: declared as PostgreSQL 15 has them, read, changed and shown.

    declared     every setting: its kind, its value here, and what may change it
    reading      from the text of a value to the value as it is kept, and back to what SHOW prints
    effects      which changes have an effect here, and which are refused
    values       the settings of a session at one moment

Settings are an immutable value, so that a rollback or a savepoint is an assignment.
"""
