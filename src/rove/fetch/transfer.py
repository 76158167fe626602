"""One reusable libcurl handle and what it collects: the part of the fetcher that curl calls back.

The constant options of a handle are set once; what differs between requests is set by `run` and
dropped by `reset`. The callbacks run inside libcurl, where an exception would be printed and lost:
they keep it and end the transfer, and `run` raises it.

Certificates are not verified and no authorities are loaded: a broad crawler reads public pages and
sends no secrets, and much of the web can be reached in this way only.
"""

from __future__ import annotations

import asyncio
import re
from collections.abc import Callable, Iterable
from dataclasses import replace

import pycurl

from rove.fetch.address import same_address
from rove.fetch.body import Undecodable, decode
from rove.fetch.failure import CurlError, detail_of, ended_unannounced, kind_of
from rove.fetch.head import (
    MAX_HEAD_BYTES,
    MAX_HEAD_LINES,
    ReadBody,
    judge,
    parse_head,
    parse_status,
)
from rove.memory import LARGE
from rove.model import Failed, FailureKind, Fetched, Outcome, Request, Response

_HEADERS = [
    "Accept: text/html, application/xhtml+xml, text/plain;q=0.9, */*;q=0.1",
    "Accept-Encoding: gzip, deflate, br",
]
_TOKEN = re.compile(r"[!#$%&'*+.^_`|~0-9A-Za-z-]+")
"""RFC 9110 5.6.2: what the name of a header is made of."""
_VALUE = re.compile(r"[\t\x20-\x7e\x80-\xff]*")
"""RFC 9110 5.5: no line end and no other control character."""
_CURVES = "X25519:P-256:P-384:P-521"
"""Without OpenSSL's post-quantum default, which costs 0.1 ms per handshake (of 0.8 measured) and makes
a ClientHello of two packets, which some servers cannot read."""
_BLANK_LINES = (b"\r\n", b"\n")
_STOP = 0
"""What a header or body callback returns to end the transfer: fewer bytes than it was given."""


class Transfer:
    """A curl handle at work on one request after the other."""

    __slots__ = (
        "_address",
        "_chunks",
        "_connect_first",
        "_curl",
        "_error",
        "_fault",
        "_first_byte",
        "_future",
        "_has_own_headers",
        "_head_start",
        "_lines",
        "_longest",
        "_paused",
        "_paused_at",
        "_pausing",
        "_plan",
        "_request",
        "_response",
        "_size",
        "_started",
        "_timer",
        "_total",
        "_truncated",
        "_verdict",
    )

    def __init__(self, *, user_agent: str) -> None:
        self._curl = pycurl.Curl()
        self._has_own_headers = False
        self._set_constants(user_agent)
        self.reset()

    def reset(self) -> None:
        """Drop everything of the last request."""
        if self._has_own_headers:
            self._curl.setopt(pycurl.HTTPHEADER, _HEADERS)
            self._has_own_headers = False
        self._request: Request | None = None
        self._address = ""
        self._first_byte = 0.0
        self._connect_first = False
        self._future: asyncio.Future[pycurl.Curl] | None = None
        self._timer: asyncio.TimerHandle | None = None
        self._lines: list[bytes] = []
        self._head_start = 0
        self._chunks: list[bytes] = []
        self._size = 0
        self._started = 0.0
        self._total = 0.0
        self._longest = 0.0
        self._paused = 0.0
        """Seconds for which it was paused, until now or until the pause that it is in."""
        self._paused_at: float | None = None
        self._pausing: asyncio.TimerHandle | None = None
        """Ends a transfer that is or was paused."""
        self._response: Response | None = None
        self._plan: ReadBody | None = None
        self._truncated = False
        self._verdict: Outcome | None = None
        self._fault: BaseException | None = None
        self._error: CurlError | None = None

    def close(self) -> None:
        """Free the handle."""
        self._curl.close()

    async def run(
        self,
        multi: pycurl.AsyncCurlMulti,
        request: Request,
        *,
        address: str,
        port: int,
        connect: float,
        first_byte: float,
        total: float,
        longest: float,
    ) -> Outcome:
        """Make the request to a checked address; the limits are seconds.

        `longest` is the total together with the time for which the transfer was paused for want of memory.
        Cancelling it takes the handle out of the multi handle, which closes the connection.
        """
        self._request = request
        self._address = address
        self._first_byte = first_byte
        self._connect_first = connect < total
        self._total = total
        self._longest = max(total, longest)
        self._started = asyncio.get_running_loop().time()
        curl = self._curl
        curl.setopt(pycurl.URL, request.url)
        # '::' stands for any host and any port: whatever the URL says, curl dials the checked
        # address and has no name left to resolve.
        dialled = f"[{address}]" if ":" in address else address
        curl.setopt(pycurl.CONNECT_TO, [f"::{dialled}:{port}"])
        if request.headers:
            self._has_own_headers = True
            curl.setopt(pycurl.HTTPHEADER, [*_HEADERS, *header_lines(request.headers)])
        # 0 would mean no limit
        curl.setopt(pycurl.CONNECTTIMEOUT_MS, max(1, int(connect * 1000)))
        curl.setopt(pycurl.TIMEOUT_MS, max(1, int(total * 1000)))
        await self._perform(multi)
        share = request.share
        if share is not None and (self._size > LARGE or share.memory.is_overdrawn):
            since = asyncio.get_running_loop().time()
            await share.memory.turn()
            self._paused += asyncio.get_running_loop().time() - since
        return self._outcome()

    async def _perform(self, multi: pycurl.AsyncCurlMulti) -> None:
        task = asyncio.current_task()
        assert task is not None
        cancelled_before = task.cancelling()
        try:
            self._future = multi.add_handle(self._curl)
            await self._future
        except pycurl.error as error:
            self._error = (error.args[0], str(error.args[1]))
        except asyncio.CancelledError:
            # Raised as well when the future alone was cancelled: by our timer, which leaves a
            # verdict, or by the multi handle when it is closed.
            if task.cancelling() > cancelled_before:
                raise
            if self._verdict is None:
                self._verdict = self._fail(FailureKind.ABORTED, "the fetcher was closed")
        finally:
            if self._timer is not None:
                self._timer.cancel()
            if self._pausing is not None:
                self._pausing.cancel()
            assert self._request is not None
            if self._request.share is not None:
                self._request.share.wait_no_more()

    def _outcome(self) -> Outcome:
        if self._fault is not None:
            raise self._fault
        if self._verdict is not None:
            return self._verdict
        if self._plan is not None and self._body_is_all(self._plan):
            return self._fetched(self._plan)
        return self._failed()

    def _body_is_all(self, plan: ReadBody) -> bool:
        if self._error is None or self._truncated:
            return True
        return ended_unannounced(self._error) and not plan.delimited

    def _fetched(self, plan: ReadBody) -> Fetched | Failed:
        assert self._request is not None and self._response is not None
        if self._paused:
            self._response = replace(self._response, waited=self._paused)
        wire = b"".join(self._chunks)
        if not plan.codings:
            return Fetched(
                response=self._response, body=wire, wire_body=wire, truncated=self._truncated
            )
        decoded = decode(
            wire, plan.codings, limit=self._request.max_bytes, wire_cut=self._truncated
        )
        if isinstance(decoded, Undecodable):
            return self._fail(FailureKind.ENCODING, decoded.detail)
        return Fetched(
            response=self._response,
            body=decoded.body,
            wire_body=wire,
            truncated=decoded.truncated,
        )

    def _failed(self) -> Failed:
        if self._error is None:
            # libcurl takes a head that breaks off for an answer without a body
            return self._fail(FailureKind.RESET, "the connection ended within the head")
        detail = detail_of(self._error)
        if self._error[0] == pycurl.E_OPERATION_TIMEDOUT:
            in_connect = self._connect_first and self._timer is None
            kind = FailureKind.TIMEOUT_CONNECT if in_connect else FailureKind.TIMEOUT_TOTAL
            return self._fail(kind, detail)
        kind = kind_of(self._error, os_errno=self._curl.getinfo(pycurl.OS_ERRNO))
        return self._fail(kind, detail)

    def _fail(self, kind: FailureKind, detail: str) -> Failed:
        status = 0 if self._response is None else self._response.status
        return Failed(
            kind=kind, detail=detail, address=self._address, status=status, waited=self._paused
        )

    def _on_connected(self, peer: str, _local: str, _peer_port: int, _local_port: int) -> int:
        """Called once the connection stands, TLS included, before anything is sent."""
        try:
            if not same_address(peer, self._address):
                self._verdict = self._fail(
                    FailureKind.ADDRESS_REFUSED, f"connected to {peer}, not to {self._address}"
                )
                return int(pycurl.PREREQFUNC_ABORT)
            loop = asyncio.get_running_loop()
            self._timer = loop.call_later(self._first_byte, self._give_up_waiting)
        except BaseException as fault:
            self._fault = fault
            return int(pycurl.PREREQFUNC_ABORT)
        return int(pycurl.PREREQFUNC_OK)

    def _give_up_waiting(self) -> None:
        if self._future is not None and self._future.cancel():
            detail = f"no answer within {self._first_byte:.1f} s of the request"
            self._verdict = self._fail(FailureKind.TIMEOUT_FIRST_BYTE, detail)

    def _on_header(self, line: bytes) -> int | None:
        """Called for each line of a head, and of the trailer of a chunked body."""
        try:
            lines = self._lines
            lines.append(line)
            if len(line) > 2 and 1 < len(lines) <= MAX_HEAD_LINES:
                return None
            if len(lines) == 1 and self._timer is not None:
                self._timer.cancel()
            if len(lines) > MAX_HEAD_LINES:
                return self._stop(self._fail(FailureKind.PROTOCOL, "too many header lines"))
            # some releases of libcurl end a trailer with a blank line too
            if line in _BLANK_LINES and self._response is None:
                return self._on_head(lines[self._head_start : -1])
        except BaseException as fault:
            self._fault = fault
            return _STOP
        return None

    def _on_head(self, lines: list[bytes]) -> int | None:
        assert self._request is not None
        status = parse_status(lines[0]) if lines else None
        if status is None or status == 101:
            return self._stop(self._fail(FailureKind.PROTOCOL, "not an HTTP answer"))
        if status < 200:
            # RFC 9110 15.2: an interim head, the real one follows
            self._head_start = len(self._lines)
            return None
        if sum(map(len, self._lines)) > MAX_HEAD_BYTES:
            return self._stop(self._fail(FailureKind.PROTOCOL, "the head is too large"))
        response = parse_head(lines, url=self._request.url, address=self._address, status=status)
        self._response = response
        decision = judge(response, self._request.accept_types)
        if isinstance(decision, ReadBody):
            self._plan = decision
            return None
        return self._stop(decision)

    def _stop(self, verdict: Outcome) -> int:
        self._verdict = verdict
        return _STOP

    def _on_body(self, chunk: bytes) -> int | None:
        try:
            assert self._request is not None
            size = self._size + len(chunk)
            excess = size - self._request.max_bytes
            if excess > 0:
                self._chunks.append(chunk[:-excess])
                self._truncated = True
                return _STOP
            share = self._request.share
            if share is not None and not share.grow(len(chunk)):
                if not share.ask(self._most(), self._on_room):
                    return self._pause()
                share.grow(len(chunk))
            self._chunks.append(chunk)
            self._size = size
        except BaseException as fault:
            self._fault = fault
            return _STOP
        return None

    def _most(self) -> int:
        """The bytes that the body may come to."""
        assert self._request is not None and self._response is not None
        most = self._request.max_bytes
        announced = self._response.header("content-length") or ""
        # RFC 9112 6.3: it does not count where the body comes in chunks
        if not announced.isdecimal() or self._response.header("transfer-encoding") is not None:
            return most
        return min(int(announced[:20]), most)

    def _pause(self) -> int:
        """Take nothing more for now; libcurl keeps what it has just offered."""
        loop = asyncio.get_running_loop()
        self._paused_at = loop.time()
        loop.call_soon(self._extend)  # no option can be set from within a callback
        return int(pycurl.WRITEFUNC_PAUSE)

    def _extend(self) -> None:
        """A pause is our affair: it does not count as the server's time. The lease, though, has its end."""
        if self._paused_at is None:
            return
        self._curl.setopt(pycurl.TIMEOUT_MS, max(1, int(self._longest * 1000)))
        self._arm(self._started + self._longest, self._give_up_pausing)

    def _on_room(self) -> None:
        """There is room for the rest; told from anywhere, another transfer's callback too."""
        asyncio.get_running_loop().call_soon(self._go_on)

    def _go_on(self) -> None:
        if self._paused_at is None:
            return  # it has ended meanwhile
        self._end_pause()
        end = self._started + min(self._total + self._paused, self._longest)
        self._arm(end, self._give_up_at_last)
        try:
            self._curl.pause(pycurl.PAUSE_CONT)
        except pycurl.error as error:
            if self._future is not None and self._future.cancel():
                self._verdict = self._fail(FailureKind.RESET, detail_of(error.args))

    def _end_pause(self) -> None:
        assert self._paused_at is not None
        self._paused += asyncio.get_running_loop().time() - self._paused_at
        self._paused_at = None

    def _arm(self, when: float, act: Callable[[], None]) -> None:
        if self._pausing is not None:
            self._pausing.cancel()
        self._pausing = asyncio.get_running_loop().call_at(when, act)

    def _give_up_pausing(self) -> None:
        self._end_pause()
        if self._future is not None and self._future.cancel():
            detail = "there was no memory for the body in time"
            self._verdict = self._fail(FailureKind.BUSY, detail)

    def _give_up_at_last(self) -> None:
        if self._total + self._paused > self._longest:
            kind, detail = FailureKind.BUSY, "memory for the body came too late"
        else:
            kind, detail = FailureKind.TIMEOUT_TOTAL, f"not all within {self._total:.1f} s"
        if self._future is not None and self._future.cancel():
            self._verdict = self._fail(kind, detail)

    def _set_constants(self, user_agent: str) -> None:
        curl = self._curl
        curl.setopt(pycurl.HTTPGET, 1)
        curl.setopt(pycurl.HTTP_VERSION, pycurl.CURL_HTTP_VERSION_1_1)
        curl.setopt(pycurl.HTTP09_ALLOWED, 0)
        curl.setopt(pycurl.PROTOCOLS, pycurl.PROTO_HTTP | pycurl.PROTO_HTTPS)
        curl.setopt(pycurl.PATH_AS_IS, 1)
        curl.setopt(pycurl.FOLLOWLOCATION, 0)
        curl.setopt(pycurl.FRESH_CONNECT, 1)
        curl.setopt(pycurl.FORBID_REUSE, 1)
        curl.setopt(pycurl.DNS_CACHE_TIMEOUT, 0)  # addresses only: nothing worth keeping
        curl.setopt(pycurl.PROXY, "")  # the environment's proxies would undo the address guard
        curl.setopt(pycurl.NOPROXY, "*")
        curl.setopt(pycurl.NETRC, pycurl.NETRC_IGNORED)
        curl.setopt(pycurl.NOSIGNAL, 1)
        curl.setopt(pycurl.SSL_VERIFYPEER, 0)
        curl.setopt(pycurl.SSL_VERIFYHOST, 0)
        curl.setopt(pycurl.SSL_SESSIONID_CACHE, 0)
        curl.setopt(pycurl.SSL_EC_CURVES, _CURVES)
        curl.setopt(pycurl.USERAGENT, user_agent)
        curl.setopt(pycurl.HTTPHEADER, _HEADERS)
        curl.setopt(pycurl.PREREQFUNCTION, self._on_connected)
        curl.setopt(pycurl.HEADERFUNCTION, self._on_header)
        curl.setopt(pycurl.WRITEFUNCTION, self._on_body)


def header_lines(headers: Iterable[tuple[str, str]]) -> list[bytes]:
    r"""Headers in libcurl's spelling, without those that could not be sent as one line of a head.

    >>> header_lines([("If-None-Match", '"caf\xe9"'), ("X-Two", "a\r\nX-Three: b"), ("X-Blank", "")])
    [b'If-None-Match: "caf\xe9"', b'X-Blank;']
    """
    lines = []
    for name, value in headers:
        if _TOKEN.fullmatch(name) and _VALUE.fullmatch(value):
            text = value.strip(" \t")
            # 'Name:' would take a header out of the request, 'Name;' sends it without a value
            lines.append(f"{name}: {text}".encode("latin-1") if text else f"{name};".encode())
    return lines
