"""What httpx leaves behind when a test breaks its connections.

The body of a request is unread if the connection breaks while it is sent, and a socket is open if
it is cancelled while it connects.
"""

from __future__ import annotations

from typing import Final

import pytest

BY_HTTPX: Final = pytest.mark.filterwarnings(
    *(
        f"ignore:.*{what}:{kind}"
        for what in ("socket.socket", "ByteStream.__aiter__")
        for kind in ("ResourceWarning", "pytest.PytestUnraisableExceptionWarning")
    )
)
