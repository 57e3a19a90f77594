"""The log's nodes as NATS JetStream servers, by a small client of our own.

    nodes.py        streams, values and parts of the port     ─┐
    synced.py       nodes that do not sync are refused         ├─► jetstream.py   calls, answers
    room.py         no appends to nodes that are nearly full   │
    connection.py   requests over one connection at a time   ◄─┘
    protocol.py     bytes of the protocol, no I/O

Start with `nodes`. Its maker runs it: `await nursery.start(nodes.run)`.
"""
