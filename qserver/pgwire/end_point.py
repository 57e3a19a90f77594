"""The hash of a certificate by which a client binds its proof to a TLS connection (RFC 5929).

It is made with the hash of the certificate's own signature, so that much of the certificate is
read here: the algorithm that stands behind what was signed.

    Certificate ::= SEQUENCE { tbsCertificate SEQUENCE, signatureAlgorithm SEQUENCE { OID … } … }
"""

from __future__ import annotations

import ssl
from collections.abc import Mapping
from hashlib import new
from pathlib import Path
from typing import Final

_HASHES: Final[Mapping[bytes, str]] = {
    bytes.fromhex("2a864886f70d010104"): "sha256",  # MD5 and SHA-1 count as SHA-256
    bytes.fromhex("2a864886f70d010105"): "sha256",
    bytes.fromhex("2a864886f70d01010b"): "sha256",
    bytes.fromhex("2a864886f70d01010c"): "sha384",
    bytes.fromhex("2a864886f70d01010d"): "sha512",
    bytes.fromhex("2a864886f70d01010e"): "sha224",
    bytes.fromhex("2a8648ce3d0401"): "sha256",
    bytes.fromhex("2a8648ce3d040302"): "sha256",
    bytes.fromhex("2a8648ce3d040303"): "sha384",
    bytes.fromhex("2a8648ce3d040304"): "sha512",
}
"""Of RSA and ECDSA, by the algorithm. Others leave open which hash is meant."""

_END: Final = "-----END CERTIFICATE-----"


def end_point_of(certificate: Path) -> bytes | None:
    """Return the hash of the first certificate of a file; None if its signature names none."""
    pem, end, _ = certificate.read_text("ascii").partition(_END)
    der = ssl.PEM_cert_to_DER_cert(pem[pem.index("-----BEGIN CERTIFICATE-----") :] + end)
    start, _ = _inside(der, 0)
    _, behind = _inside(der, start)
    algorithm, _ = _inside(der, behind)
    oid_start, oid_end = _inside(der, algorithm)
    name = _HASHES.get(der[oid_start:oid_end])
    return None if name is None else new(name, der).digest()


def _inside(der: bytes, at: int) -> tuple[int, int]:
    """Return where the contents of a value begin, and where they end."""
    length, start = der[at + 1], at + 2
    if length & 0x80:
        count = length & 0x7F
        length = int.from_bytes(der[start : start + count], "big")
        start += count
    return start, start + length
