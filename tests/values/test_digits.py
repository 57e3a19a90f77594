"""Short integers are read as they are, long ones as some long integer."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from qserver.values.digits import DIGITS_KEPT, clipped_integer


@given(st.integers(-(10**DIGITS_KEPT) + 1, 10**DIGITS_KEPT - 1), st.integers(0, 30))
def test_what_fits_is_read_as_it_is(number: int, zeros: int) -> None:
    sign = "-" if number < 0 else ""
    assert clipped_integer(f" {sign}{'0' * zeros}{abs(number)}") == number


@given(st.text("0123456789", min_size=DIGITS_KEPT, max_size=6000))
def test_what_is_longer_stays_beyond_what_fits(digits: str) -> None:
    assert clipped_integer(f"1{digits}") >= 10 ** (DIGITS_KEPT - 1)
    assert clipped_integer(f"-1{digits}") <= -(10 ** (DIGITS_KEPT - 1))
