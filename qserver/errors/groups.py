"""Exception groups, as nurseries raise them."""

from __future__ import annotations


def first_of(error: Exception) -> Exception:
    """The first of the errors that a nursery has put together, or the error itself."""
    while isinstance(error, ExceptionGroup):
        error = error.exceptions[0]
    return error
