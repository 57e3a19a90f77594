"""Functions over text and bytes."""
