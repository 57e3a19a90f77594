"""SQL on top of the transactions of `engine`: statements in, rows out.

    SqlDatabase ─► Planner (parsed, bound, optimized, compiled; or from the cache) ─► Cursor

The engine knows keys, values and versions; this room turns the text of a statement into a plan and
runs the plan inside one of the engine's transactions.
"""
