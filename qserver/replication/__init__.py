"""The replicated log: a family's records on several machines, with its files as a local copy.

Start with `port`: what is asked of the log's nodes. `family` appends to a stream and owns it.
"""
