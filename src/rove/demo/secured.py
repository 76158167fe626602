"""The small web over TLS, as cheaply as Python can: a handshake for every page is what a crawler meets.

OpenSSL is fed from memory by hand. On uvloop this takes a fifth less CPU time for a handshake than the loop's own TLS,
and no more than non-blocking sockets of the ssl module (0.7 ms, of which nearly all is OpenSSL's; measured with
`openssl s_time`, a P-256 certificate and TLS 1.3).
"""

from __future__ import annotations

import asyncio
import ssl
from contextlib import suppress
from pathlib import Path
from typing import Any, cast

from rove.errors import UsageError

_READ = 65_536


def server_context(certificate: Path) -> ssl.SSLContext:
    """A server's settings: one certificate for all names, no session to resume, so that each visit pays in full."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.num_tickets = 0
    context.options |= ssl.OP_NO_TICKET
    try:
        context.load_cert_chain(certificate)
    except (OSError, ssl.SSLError) as error:
        raise UsageError(f"{certificate} is not a certificate with its key: {error}") from error
    return context


class Secured(asyncio.Protocol):
    """Stands between the socket and a protocol that knows nothing of TLS."""

    def __init__(self, inner: asyncio.Protocol, context: ssl.SSLContext) -> None:
        self._inner = inner
        self._incoming, self._outgoing = ssl.MemoryBIO(), ssl.MemoryBIO()
        self._tls = context.wrap_bio(self._incoming, self._outgoing, server_side=True)
        self._shaken = False

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast(asyncio.Transport, transport)
        self._inner.connection_made(_SecuredTransport(self, self._transport))

    def data_received(self, data: bytes) -> None:
        self._incoming.write(data)
        received = self._decrypted()
        self._flush()  # what the handshake says, or an alert
        if received is None:
            self._transport.close()
        elif received:
            self._inner.data_received(received)

    def _decrypted(self) -> bytes | None:
        """What has come so far; None if nothing more will."""
        parts = []
        try:
            if not self._shaken:
                self._tls.do_handshake()
                self._shaken = True
            while part := self._tls.read(_READ):
                parts.append(part)
        except ssl.SSLWantReadError:
            return b"".join(parts)
        except ssl.SSLError:
            pass
        return b"".join(parts) or None

    def eof_received(self) -> None:
        self._inner.eof_received()

    def pause_writing(self) -> None:
        self._inner.pause_writing()

    def resume_writing(self) -> None:
        self._inner.resume_writing()

    def connection_lost(self, error: Exception | None) -> None:
        self._inner.connection_lost(error)

    def send(self, data: bytes) -> None:
        """Encrypt and hand over."""
        self._tls.write(data)
        self._flush()

    def finish(self) -> None:
        """Say that nothing more comes; without it a client takes the end for an accident."""
        with suppress(ssl.SSLError):  # the client has not said so yet, which nobody waits for
            self._tls.unwrap()
        self._flush()

    def _flush(self) -> None:
        if self._outgoing.pending:
            self._transport.write(self._outgoing.read())


class _SecuredTransport(asyncio.Transport):
    """What the inner protocol writes to."""

    def __init__(self, secured: Secured, below: asyncio.Transport) -> None:
        super().__init__()
        self._secured = secured
        self._below = below

    def write(self, data: Any) -> None:
        if data:
            self._secured.send(data)

    def close(self) -> None:
        if not self._below.is_closing():
            self._secured.finish()
        self._below.close()

    def abort(self) -> None:
        self._below.abort()

    def is_closing(self) -> bool:
        return self._below.is_closing()

    def get_write_buffer_size(self) -> int:
        return self._below.get_write_buffer_size()

    def set_write_buffer_limits(self, high: int | None = None, low: int | None = None) -> None:
        self._below.set_write_buffer_limits(high, low)
