"""Looks at the certificate of the server and its key, as a client and a thief would.

The two shake hands with each other in memory: so they belong together, a client would take them,
and the client's side tells when the certificate ends.
"""

from __future__ import annotations

import ssl
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final

from qserver.cli.doctor.finding import Finding, ok, problem, warning
from qserver.errors import CannotListen
from qserver.http1.options import ServerOptions
from qserver.http1.tls import tls_context

OTHERS_READ: Final = 0o044
DAY: Final = 86_400
DAYS_FEW: Final = 14
_TIMES_UNCHECKED: Final = 0x200000
"""X509_V_FLAG_NO_CHECK_TIME of OpenSSL: one that has ended is told by its date."""


def look_at_certificate(certificate: Path, key: Path, now: float) -> Iterator[Finding]:
    try:
        ends = _end_of(certificate, key)
    except CannotListen as error:
        yield problem("certificate", error.message, error.hint or "Look at both files.")
        return
    except OSError as error:  # errors of TLS are such
        text = f"clients cannot take the certificate {certificate}: {error}"
        yield problem("certificate", text, "Make another, for a server.")
        return
    days = (ends - now) / DAY
    if days <= 0:
        text = f"the certificate {certificate} ended {-days:.0f} days ago"
        yield problem("certificate", text, "Renew it, and start the server again.")
    elif days < DAYS_FEW:
        text = f"the certificate {certificate} ends in {days:.0f} days"
        yield warning("certificate", text, "Renew it, and start the server again.")
    else:
        yield ok("certificate", f"the certificate {certificate} is good for {days:,.0f} days")
    if key.stat().st_mode & OTHERS_READ:
        yield problem("certificate's key", f"others may read {key}", f"chmod 600 {key}")


def _end_of(certificate: Path, key: Path) -> float:
    """When the certificate ends, in seconds since 1970."""
    serving = tls_context(ServerOptions(certificate=certificate, key=key))
    assert serving is not None
    asking = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    asking.check_hostname = False
    asking.load_verify_locations(certificate)
    asking.verify_flags |= ssl.VERIFY_X509_PARTIAL_CHAIN | ssl.VerifyFlags(_TIMES_UNCHECKED)
    there, back = ssl.MemoryBIO(), ssl.MemoryBIO()
    client = asking.wrap_bio(back, there)
    server = serving.wrap_bio(there, back, server_side=True)
    for end in (client, server, client):
        _step(end)
    found: Any = client.getpeercert()
    return ssl.cert_time_to_seconds(found["notAfter"])


def _step(end: ssl.SSLObject) -> None:
    """Go on with a handshake, as far as what has arrived leads."""
    try:
        end.do_handshake()
    except ssl.SSLWantReadError:
        pass
