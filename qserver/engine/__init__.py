"""The actors of one database: shards, their coordinator, and the gateway in front.

Below the web, only this room uses Trio. Each actor is a class of synchronous decisions with one
loop that waits, and actors share nothing but frozen messages in bounded mailboxes. One nursery
holds one database: if an actor dies, all end together, and the log brings them back.

Clock, chance and disk come in as arguments, so the simulation runs this very code.
"""
