"""What survives a crash: the log, and recovery from it.

The rest of the engine sees a small port: append records and return when they are safe, and read
them back in order. The port does not mention files, because a file is only one way to keep the
promise; the simulation's disk, which forgets and tears on purpose, is another. A transaction that
is not in the log has not happened.
"""
