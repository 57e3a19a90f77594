"""`qserver mcp`: a database as tools and resources for language models, over MCP.

    arguments.py   what each tool takes              resources.py   tables as resources
    tools.py       the table of tools                bounded.py     answers of a bounded size
    reading.py     tools that only read              server.py      the protocol's server
    changing.py    tools that change                 transports.py  stdio and HTTP, on Trio

    client ──► server.py ──► tools.py ──► reading.py, changing.py ──► qserver.client ──► qserver

It is a client of a server like any other: it has a URL and a key, and can do what the key may do.
Tools that change something exist only where they were asked for. No text of a row is ever read as
anything but a value.

`mcp` is also the name of the package that speaks the protocol; imports here are absolute, so
`import mcp` is that package, and `qserver.mcp` this one.
"""
