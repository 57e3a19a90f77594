"""Objects in a bucket of S3, or of a service that speaks its protocol: MinIO, R2, Ceph and others.

The library is obstore (the crate object_store): no dependencies of its own, keys also from the
instance or the container, calls that block without Python's lock. It is the extra `qserver[s3]`.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from datetime import timedelta
from html import unescape
from typing import Any, Final

from qserver.archive.objects import Key, ObjectMissing, TargetAway
from qserver.errors import InvalidRequest, InvalidSetting

SCHEME: Final = "s3://"
REMOVED_AT_ONCE: Final = 500
_REGION: Final = "us-east-1"
_NO_BUCKET: Final = "<Code>NoSuchBucket</Code>"
_SAID: Final = re.compile(
    r"<Code>(?P<code>\w+)</Code>(?:\s*<Message>(?P<message>[^<]*)</Message>)?"
)
_SERVER: Final = re.compile(r"Error performing [A-Z]+ (https?://[^/?\s]+)")
_KEYS_OF_MACHINES: Final = ("http://169.254.169.254", "http://169.254.170.2")
_UNSENT: Final = "error sending request"
_TOOK: Final = re.compile(r" in [\d.]+\w?s(?:, after \d+ retries[^-]*)?")


class S3Objects:
    def __init__(self, url: str, environ: Mapping[str, str], endpoint: str | None = None) -> None:
        """`environ` has the usual AWS_… variables; `endpoint` is that of another service."""
        bucket, _, prefix = url.removeprefix(SCHEME).partition("/")
        if not bucket:
            raise InvalidRequest(f"{url} names no bucket", hint="Write s3://bucket/prefix.")
        self._url = f"{SCHEME}{bucket}/{prefix}".rstrip("/")
        try:
            import obstore
            from obstore.exceptions import BaseError, NotFoundError
            from obstore.store import S3Store
        except ImportError as error:
            raise InvalidSetting(
                "to back up to S3 the package obstore is needed",
                hint="Install it: pip install 'qserver[s3]'.",
            ) from error
        self._calls: Any = obstore
        self._failure: type[Exception] = BaseError
        self._missing = NotFoundError, FileNotFoundError
        endpoint = endpoint or environ.get("AWS_ENDPOINT_URL_S3") or environ.get("AWS_ENDPOINT_URL")
        region = environ.get("AWS_REGION") or environ.get("AWS_DEFAULT_REGION") or _REGION
        options: dict[str, Any] = {"region": region}
        if endpoint:
            options["endpoint"] = endpoint.rstrip("/")
        self._store: Any = S3Store(
            bucket,
            prefix=prefix.strip("/") or None,
            client_options={
                "allow_http": bool(endpoint and endpoint.startswith("http://")),
                "connect_timeout": timedelta(seconds=5),
                "timeout": timedelta(seconds=120),
            },
            retry_config={"max_retries": 2, "retry_timeout": timedelta(seconds=30)},
            **options,
        )

    @property
    def place(self) -> str:
        return self._url

    def save(self, name: str, data: bytes) -> None:
        with self._away():
            self._calls.put(self._store, name, data)

    def load(self, name: str) -> bytes:
        with self._away():
            try:
                return bytes(self._calls.get(self._store, name).bytes())
            except self._missing as error:
                if _NO_BUCKET in str(error):
                    raise
                raise ObjectMissing(f"{self._url}/{name} is not there") from None

    def keys(self) -> list[Key]:
        with self._away():
            pages = self._calls.list(self._store)
            return sorted(Key(each["path"], each["size"]) for page in pages for each in page)

    def remove(self, names: Sequence[str]) -> None:
        with self._away():
            for at in range(0, len(names), REMOVED_AT_ONCE):
                try:
                    self._calls.delete(self._store, list(names[at : at + REMOVED_AT_ONCE]))
                except self._missing:
                    continue

    @contextmanager
    def _away(self) -> Iterator[None]:
        try:
            yield
        except (self._failure, OSError) as error:
            raise TargetAway(
                f"{self._url} cannot be used: {_reason(error)}",
                hint="See to it that the bucket is there, and that region, endpoint and keys are"
                " right (AWS_REGION, AWS_ENDPOINT_URL, AWS_ACCESS_KEY_ID, AWS_SECRET_ACCESS_KEY).",
            ) from error

    def __repr__(self) -> str:
        return f"objects in {self._url}"


def _reason(error: Exception) -> str:
    """Say why in a line, the same each time: the library's has how long it took, and XML."""
    text = str(error).strip()
    if found := _SAID.search(text):
        return f"{unescape(found['message'] or 'it is refused').rstrip('.')} ({found['code']})"
    server = _SERVER.search(text)
    if server is not None and server[1] in _KEYS_OF_MACHINES:
        return "there are no keys in the environment, and none of this machine"
    if server is not None and _UNSENT in text:
        return f"nothing answers at {server[1]}"
    line = _TOOK.sub("", text.partition("\n")[0])
    return line if len(line) <= 300 else f"{line[:300]}…"
