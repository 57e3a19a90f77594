"""The clients' way over HTTP: requests to the product's own application, without a socket.

client ── head, JSON ──► exchange ── endpoint, handle ──► front: Application ──► SqlDatabase
       ◄── Response ────    │    ◄── now, later, parts ──
                            └── plays the server: it checks that an answer is given once
"""
