"""One reusable libcurl handle and what it collects: the part of the fetcher that curl calls back.

The constant options of a handle are set once (handle.py); what differs between requests is set by
`run` and dropped by `reset`. The callbacks run inside libcurl, where an exception would be printed
and lost: they keep it and end the transfer, and `run` raises it.
"""

from __future__ import annotations

import asyncio
import select

import msgspec
import pycurl
from msgspec.structs import replace

from rove.fetch.address import same_address
from rove.fetch.body import Undecodable, decode
from rove.fetch.contract import Request
from rove.fetch.failure import CurlError, detail_of, ended_unannounced, is_our_trouble, kind_of
from rove.fetch.handle import (
    HEADERS,
    Identity,
    close_pool,
    header_lines,
    new_handle,
    open_pool,
    set_strict,
)
from rove.fetch.head import (
    MAX_HEAD_BYTES,
    MAX_HEAD_LINES,
    MAX_UNREAD,
    ReadBody,
    is_soon_over,
    judge,
    parse_head,
    parse_status,
)
from rove.fetch.limits import FetchLimits
from rove.fetch.pauses import Pauses
from rove.fetch.rate_guard import RateGuard, look_again_in, received_bytes
from rove.fetch.tls import doubt_of
from rove.model.outcomes import (
    Failed,
    FailureKind,
    Fetched,
    Outcome,
    Response,
)
from rove.resources.memory import LARGE

BODY_CUT = "body-cut"
"""The mark of a body that was longer than the cap."""
DECOMPRESSION_CUT = "decompression-cut"
"""The mark of one that grew out of all proportion."""
_USUAL = FetchLimits()
_BLANK_LINES = (b"\r\n", b"\n")
_STOP = 0
"""What a header or body callback returns to end the transfer: fewer bytes than it was given."""


class Times(msgspec.Struct, frozen=True, kw_only=True):
    """Moments of the event loop's clock."""

    connect_by: float
    end_by: float
    latest: float
    """By when it must be over although it had to wait for memory."""


class Transfer:
    """A curl handle at work on one request after the other."""

    __slots__ = (
        "_address",
        "_before",
        "_chunks",
        "_connect_first",
        "_connect_ms",
        "_connect_to",
        "_curl",
        "_error",
        "_fault",
        "_flow",
        "_future",
        "_has_own_headers",
        "_head_start",
        "_identity",
        "_limits",
        "_lines",
        "_loop",
        "_pauses",
        "_plan",
        "_pool",
        "_request",
        "_response",
        "_sent_at",
        "_size",
        "_strict",
        "_timer",
        "_total_ms",
        "_truncated",
        "_verdict",
    )

    def __init__(self, identity: Identity) -> None:
        self._identity = identity
        self._loop = asyncio.get_running_loop()  # asked for once: it takes a system call each time
        self._curl = new_handle(identity)
        self._curl.setopt(pycurl.PREREQFUNCTION, self._on_connected)
        self._curl.setopt(pycurl.HEADERFUNCTION, self._on_header)
        self._curl.setopt(pycurl.WRITEFUNCTION, self._on_body)
        self._has_own_headers = False
        self._strict = True
        self._connect_to = ""
        self._connect_ms = self._total_ms = 0
        """These three are what the handle was told last: they are often the same the next time."""
        self._pool: pycurl.CurlShare | None = None
        """Where a connection is left open, if that was asked for."""
        self._before = 0
        """Bytes of the answers that came before over that connection."""
        self._pauses = Pauses(started=0.0, total=0.0, longest=0.0)
        self.reset()

    def reset(self) -> None:
        """Drop everything of the last request."""
        if self._has_own_headers:
            self._curl.setopt(pycurl.HTTPHEADER, HEADERS)
            self._has_own_headers = False
        self._request: Request | None = None
        self._address = ""
        self._limits = _USUAL
        self._sent_at = 0.0
        self._flow: RateGuard | None = None
        self._connect_first = False
        self._future: asyncio.Future[pycurl.Curl] | None = None
        self._timer: asyncio.TimerHandle | None = None
        self._lines: list[bytes] = []
        self._head_start = 0
        self._chunks: list[bytes] = []
        self._size = 0
        self._response: Response | None = None
        self._plan: ReadBody | None = None
        self._truncated = False
        self._verdict: Outcome | None = None
        self._fault: BaseException | None = None
        self._error: CurlError | None = None

    @property
    def is_open(self) -> bool:
        """Whether the connection of the last request was left open, for another one."""
        return self._pool is not None and bool(self._curl.getinfo(pycurl.ACTIVESOCKET) >= 0)

    @property
    def is_silent(self) -> bool:
        """Whether nothing has come since: only that the server has left could; libcurl looks once a second at most."""
        descriptor = self._curl.getinfo(pycurl.ACTIVESOCKET)
        if descriptor < 0:
            return False
        poll = select.poll()
        poll.register(descriptor, select.POLLIN)
        return not poll.poll(0)

    def hang_up(self) -> None:
        """Leave nothing open."""
        if self._pool is not None:
            close_pool(self._curl, self._pool)
            self._pool = None
            self._before = 0

    def close(self) -> None:
        """Free the handle, and leave nothing open."""
        self.hang_up()
        self._curl.close()

    async def run(
        self,
        multi: pycurl.AsyncCurlMulti,
        request: Request,
        *,
        address: str,
        port: int,
        strict: bool,
        times: Times,
        limits: FetchLimits,
    ) -> Outcome:
        """Make the request to a checked address, by these times; `strict` takes no doubtful TLS.

        What was left open is used if it leads to this address, with TLS of this kind. Cancelling it takes the handle
        out of the multi handle, which closes the connection.
        """
        self._request = request
        self._address = address
        self._limits = limits
        now = self._loop.time()
        connect, total = times.connect_by - now, times.end_by - now
        self._connect_first = connect < total
        self._pauses = Pauses(started=now, total=total, longest=times.latest - now)
        curl = self._curl
        if strict is not self._strict:
            self._strict = strict
            set_strict(curl, self._identity, strict=strict)
        curl.setopt(pycurl.URL, request.url.text)
        # '::' stands for any host and any port: whatever the URL says, curl dials the checked
        # address and has no name left to resolve.
        connect_to = f"::[{address}]:{port}" if ":" in address else f"::{address}:{port}"
        if connect_to != self._connect_to:
            curl.setopt(pycurl.CONNECT_TO, [connect_to])
            self._connect_to = connect_to
        if request.headers:
            self._has_own_headers = True
            curl.setopt(pycurl.HTTPHEADER, [*HEADERS, *header_lines(request.headers)])
        if request.more_follows and self._pool is None:
            self._pool = open_pool(curl)
        if self._pool is not None:
            curl.setopt(pycurl.FORBID_REUSE, 0 if request.more_follows else 1)
        # 0 would mean no limit
        connect_ms, total_ms = max(1, round(connect * 1000)), max(1, round(total * 1000))
        if connect_ms != self._connect_ms:
            curl.setopt(pycurl.CONNECTTIMEOUT_MS, connect_ms)
            self._connect_ms = connect_ms
        self._set_total(total_ms)
        await self._perform(multi)
        self._before = 0 if self._pool is None else self._counted()
        share = request.share
        if share is not None and (self._size > LARGE or share.memory.is_overdrawn):
            self._pauses.begin(self._loop.time())
            await share.memory.turn()
            self._pauses.end(self._loop.time())
        return self._unless_left_over(self._outcome())

    def _set_total(self, milliseconds: int) -> None:
        if milliseconds != self._total_ms:
            self._curl.setopt(pycurl.TIMEOUT_MS, milliseconds)
            self._total_ms = milliseconds

    async def _perform(self, multi: pycurl.AsyncCurlMulti) -> None:
        task = asyncio.current_task(self._loop)
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

    def _unless_left_over(self, outcome: Outcome) -> Outcome:
        """What is no HTTP, over a connection that was used before, may be the rest of the answer before.

        With TLS that rest may have been decrypted already, where `is_silent` does not see it. The connection is to
        blame then, not the page, which is to be tried again over another one.
        """
        if (
            isinstance(outcome, Failed)
            and outcome.kind is FailureKind.PROTOCOL
            and self._response is None
            and self._sent_at
            and not self._curl.getinfo(pycurl.NUM_CONNECTS)
        ):
            detail = f"over a connection that was left open: {outcome.detail}"
            return replace(outcome, kind=FailureKind.RESET, detail=detail)
        return outcome

    def _body_is_all(self, plan: ReadBody) -> bool:
        if self._error is None or self._truncated:
            return True
        return ended_unannounced(self._error) and not plan.delimited

    def _fetched(self, plan: ReadBody) -> Fetched | Failed:
        assert self._request is not None and self._response is not None
        if self._pauses.seconds:
            self._response = replace(self._response, waited=self._pauses.seconds)
        wire = b"".join(self._chunks)
        if not plan.codings:
            return Fetched(
                response=self._marked(BODY_CUT) if self._truncated else self._response,
                body=wire,
                wire_body=wire,
                truncated=self._truncated,
            )
        decoded = decode(
            wire, plan.codings, limit=self._request.max_bytes, wire_cut=self._truncated
        )
        if isinstance(decoded, Undecodable):
            return self._fail(FailureKind.ENCODING, decoded.detail)
        response = self._response
        if decoded.truncated:
            response = self._marked(DECOMPRESSION_CUT if decoded.bomb else BODY_CUT)
        return Fetched(
            response=response,
            body=decoded.body,
            wire_body=wire,
            truncated=decoded.truncated,
        )

    def _marked(self, mark: str) -> Response:
        assert self._response is not None
        return replace(self._response, marks=(*self._response.marks, mark))

    def _failed(self) -> Failed:
        if self._error is None:
            # libcurl takes a head that breaks off for an answer without a body
            return self._fail(FailureKind.RESET, "the connection ended within the head")
        detail = detail_of(self._error)
        if self._error[0] == pycurl.E_OPERATION_TIMEDOUT:
            if self._pauses.is_on:
                return self._out_of_memory()
            in_connect = self._connect_first and not self._sent_at
            kind = FailureKind.TIMEOUT_CONNECT if in_connect else FailureKind.TIMEOUT_TOTAL
            return self._fail(kind, detail)
        os_errno = self._curl.getinfo(pycurl.OS_ERRNO)
        if is_our_trouble(self._error, os_errno=os_errno, address=self._address):
            detail += ": too much is open already"
            return Failed(kind=FailureKind.BUSY, detail=detail, shortage=True)
        failed = self._fail(kind_of(self._error, os_errno=os_errno), detail)
        if failed.kind is not FailureKind.TLS or not self._strict:
            return failed
        result = self._curl.getinfo(pycurl.SSL_VERIFYRESULT)
        doubt = doubt_of(self._error, verify_result=result, os_errno=os_errno)
        return failed if doubt is None else replace(failed, marks=(doubt,))

    def _fail(self, kind: FailureKind, detail: str) -> Failed:
        status = 0 if self._response is None else self._response.status
        return Failed(
            kind=kind,
            detail=detail,
            address=self._address,
            status=status,
            waited=self._pauses.seconds,
        )

    def _out_of_memory(self) -> Failed:
        self._pauses.end(self._loop.time())
        return self._fail(FailureKind.BUSY, "there was no memory for the body in time")

    def _on_connected(self, peer: str, _local: str, _peer_port: int, _local_port: int) -> int:
        """Called when a connection stands, TLS included, before anything is sent over it."""
        try:
            if not same_address(peer, self._address):
                self._verdict = self._fail(
                    FailureKind.ADDRESS_REFUSED, f"connected to {peer}, not to {self._address}"
                )
                return int(pycurl.PREREQFUNC_ABORT)
            if self._sent_at:
                # libcurl would ask again over a new connection, and nobody would know that it was asked twice
                detail = "the connection that was left open ended without an answer"
                self._verdict = self._fail(FailureKind.RESET, detail)
                return int(pycurl.PREREQFUNC_ABORT)
            self._sent_at = self._loop.time()
            self._look_later()
        except BaseException as fault:
            self._fault = fault
            return int(pycurl.PREREQFUNC_ABORT)
        return int(pycurl.PREREQFUNC_OK)

    def _look_later(self) -> None:
        self._timer = self._loop.call_later(look_again_in(self._limits), self._look)

    def _look(self) -> None:
        """Called now and then while the transfer lasts: is it still worth waiting for?"""
        now = self._loop.time()
        if self._verdict is not None:
            self._leave(self._verdict)
            return
        if self._pauses.is_on:
            if now >= self._pauses.latest:
                self._leave(self._out_of_memory())
                return
        elif self._pauses.have_been and now >= self._pauses.latest:
            self._leave(self._fail(FailureKind.TIMEOUT_TOTAL, "not all in time"))
            return
        elif not self._lines:
            waited = now - self._sent_at
            if waited >= self._limits.first_byte:
                detail = f"no answer within {self._limits.first_byte:.1f} s of the request"
                self._leave(self._fail(FailureKind.TIMEOUT_FIRST_BYTE, detail))
                return
        elif self._flow is None:
            self._flow = RateGuard(self._limits, now=now, counted=self._counted())
        else:
            received = received_bytes(self._curl.getinfo(pycurl.ACTIVESOCKET))
            trouble = self._flow.judge(now=now, counted=self._counted(), received=received)
            if trouble is not None:
                self._leave(self._fail(*trouble))
                return
        self._look_later()

    def _counted(self) -> int:
        """Bytes of head and body, of all answers that came over the connection."""
        return self._before + sum(map(len, self._lines)) + self._size

    def _leave(self, verdict: Outcome) -> None:
        """End the transfer from outside of libcurl, if it has not ended."""
        if self._future is not None and self._future.cancel():
            self._verdict = verdict

    def _on_header(self, line: bytes) -> int | None:
        """Called for each line of a head, and of the trailer of a chunked body."""
        try:
            lines = self._lines
            lines.append(line)
            if len(line) > 2 and len(lines) <= MAX_HEAD_LINES:
                return None
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
        response = parse_head(
            lines, url=self._request.url.text, address=self._address, status=status
        )
        self._response = response
        decision = judge(response, self._request.accept_types)
        if isinstance(decision, ReadBody):
            self._plan = decision
            return None
        if self._request.more_follows and is_soon_over(response):
            # read to its end for the sake of the connection, for a second at most
            self._verdict = decision
            return None
        return self._stop(decision)

    def _stop(self, verdict: Outcome) -> int:
        self._verdict = verdict
        return _STOP

    def _on_body(self, chunk: bytes) -> int | None:
        try:
            assert self._request is not None
            size = self._size + len(chunk)
            if self._verdict is not None:
                self._size = size
                return _STOP if size > MAX_UNREAD else None
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
        loop = self._loop
        self._pauses.begin(loop.time())
        loop.call_soon(self._extend)  # no option can be set from within a callback
        return int(pycurl.WRITEFUNC_PAUSE)

    def _extend(self) -> None:
        if self._pauses.is_on:
            self._set_total(max(1, round(self._pauses.longest * 1000)))

    def _on_room(self) -> None:
        """There is room for the rest; told from anywhere, another transfer's callback too."""
        self._loop.call_soon(self._go_on)

    def _go_on(self) -> None:
        if not self._pauses.is_on:
            return  # it has ended meanwhile
        self._pauses.end(self._loop.time())
        self._flow = None  # its rate is taken anew
        try:
            self._curl.pause(pycurl.PAUSE_CONT)
        except pycurl.error as error:
            self._leave(self._fail(FailureKind.RESET, detail_of(error.args)))
