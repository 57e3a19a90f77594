"""POST /sql: the protocol of Neon's serverless driver, so that it works with a connection string.

    @neondatabase/serverless, drizzle-orm/neon-http, kysely-neon, @vercel/postgres …
        ─► POST /sql ─► requests ─► calls ─► SqlDatabase ─► answers

requests   the headers and the body
calls      the request, as any that runs statements
answers    rows as PostgreSQL's texts, errors with PostgreSQL's fields
upgrading  GET /v2: a connection that speaks PostgreSQL's protocol in a WebSocket from then on
tunnel     the bytes inside its frames

It is the same engine with the same keys, limits and plans as behind /v1/query. What differs is the
form: each parameter is a text whose place decides its type, each value is PostgreSQL's text.
"""

from __future__ import annotations

from qserver.web.neon.calls import NeonEndpoint as NeonEndpoint
