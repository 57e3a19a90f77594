"""INSERT, UPDATE, DELETE and MERGE, and the columns that they write."""
