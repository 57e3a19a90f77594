"""The clauses of a query as a plan: SELECT, GROUP BY, WINDOW, ORDER BY, UNION."""
