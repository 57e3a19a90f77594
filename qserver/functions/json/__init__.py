"""Functions and operators of json and jsonb."""
