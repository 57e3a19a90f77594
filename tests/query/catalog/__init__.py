"""The catalog against PostgreSQL's, and the program that records what is PostgreSQL's own in it."""
