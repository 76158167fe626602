"""One request over one curl handle: sends it, collects the response, and stops as soon as the outcome is clear.

libcurl calls back when the connection is ready, for each header line and for each piece of the body. It would print and
lose an exception raised there, so the callbacks store it and end the transfer, and `run` raises it.
"""

from __future__ import annotations

import asyncio

import pycurl
from msgspec.structs import replace

from rove.fetch.address import same_address
from rove.fetch.body import Undecodable, decode
from rove.fetch.contract import Request
from rove.fetch.failure import CurlError, detail_of, ended_without_notice, is_local_shortage, kind_of
from rove.fetch.handle import CurlHandle
from rove.fetch.head import (
    MAX_DRAINED,
    MAX_HEAD_BYTES,
    MAX_HEAD_LINES,
    ReadBody,
    is_worth_draining,
    judge,
    max_body_size,
    parse_head,
    parse_status,
)
from rove.fetch.limits import Deadlines, FetchLimits
from rove.fetch.pauses import Pauses
from rove.fetch.rate_guard import RateGuard, received_bytes, seconds_to_check
from rove.fetch.tls import doubt_of
from rove.model.marks import Mark
from rove.model.outcomes import Failed, FailureKind, Fetched, Outcome, Response
from rove.resources.memory import LARGE

_BLANK_LINES = (b"\r\n", b"\n")
_STOP = 0
"""A header or body callback ends the transfer by returning fewer bytes than it was given."""


class Exchange:
    """One request and its response. Use it once."""

    def __init__(
        self, handle: CurlHandle, request: Request, *, address: str, deadlines: Deadlines, limits: FetchLimits
    ) -> None:
        self._handle = handle
        self._request = request
        self._address = address
        self._limits = limits
        self._loop = handle.loop
        self._deadlines = deadlines
        self._pauses = Pauses(deadline=deadlines.total, latest=deadlines.with_pauses)
        self._started = 0.0
        self._future: asyncio.Future[pycurl.Curl] | None = None
        self._timer: asyncio.TimerHandle | None = None
        self._rate_guard: RateGuard | None = None
        self._sent_at = 0.0
        self._lines: list[bytes] = []
        """Header lines of all heads and of the trailer."""
        self._head_start = 0
        self._response: Response | None = None
        self._plan: ReadBody | None = None
        self._chunks: list[bytes] = []
        self._size = 0
        """Bytes of the body."""
        self._truncated = False
        self._outcome: Outcome | None = None
        """Set when the outcome is clear before libcurl is done."""
        self._exception: BaseException | None = None
        self._error: CurlError | None = None

    async def run(self, multi: pycurl.AsyncCurlMulti, *, port: int, strict: bool) -> Outcome:
        """Make the request; `strict` refuses doubtful TLS. Cancelling it closes the connection."""
        request, handle = self._request, self._handle
        handle.prepare(
            request.url.text,
            address=self._address,
            port=port,
            headers=request.headers,
            strict=strict,
            keep_open=request.keep_open,
        )
        self._started = now = self._loop.time()
        deadlines = self._deadlines
        handle.set_timeouts(connect=deadlines.connect - now, total=deadlines.total - now)
        handle.set_callbacks(self._on_connected, self._on_header, self._on_body)
        try:
            await self._transfer(multi)
        finally:
            handle.set_callbacks(None, None, None)
            if self._timer is not None:
                self._timer.cancel()
            if request.share is not None:
                request.share.wait_no_more()
        handle.note_received(self._received)
        share = request.share
        if share is not None and (self._size > LARGE or share.memory.is_overdrawn):
            self._pauses.begin(self._loop.time())
            await share.memory.turn()
            self._pauses.end(self._loop.time())
        return self._final_outcome()

    async def _transfer(self, multi: pycurl.AsyncCurlMulti) -> None:
        task = asyncio.current_task(self._loop)
        assert task is not None
        cancelled_before = task.cancelling()
        try:
            self._future = multi.add_handle(self._handle.curl)
            await self._future
        except pycurl.error as error:
            self._error = (error.args[0], str(error.args[1]))
        except asyncio.CancelledError:
            # Also raised when only the future was cancelled: by `_abort`, which sets an outcome, or by the multi
            # handle when the fetcher closes.
            if task.cancelling() > cancelled_before:
                raise
            if self._outcome is None:
                self._outcome = self._failed(FailureKind.ABORTED, "the fetcher was closed")

    # The outcome

    def _final_outcome(self) -> Outcome:
        if self._exception is not None:
            raise self._exception
        outcome = self._outcome
        if outcome is None:
            outcome = self._fetched() if self._is_complete() else self._failure()
        if isinstance(outcome, Failed) and self._may_be_left_over(outcome):
            detail = f"over a connection that was left open: {outcome.detail}"
            return replace(outcome, kind=FailureKind.RESET, detail=detail)
        return outcome

    def _may_be_left_over(self, failed: Failed) -> bool:
        """Whether the bytes that were not HTTP may be the rest of the previous response on the connection.

        TLS may have decrypted that rest already, where `is_silent` does not see it. Then the connection is to blame
        and not the page, which deserves another try over a new connection.
        """
        return (
            failed.kind is FailureKind.PROTOCOL
            and self._response is None
            and self._sent_at > 0
            and not self._handle.curl.getinfo(pycurl.NUM_CONNECTS)
        )

    def _is_complete(self) -> bool:
        if self._plan is None:
            return False
        if self._error is None or self._truncated:
            return True
        return ended_without_notice(self._error) and not self._plan.delimited

    def _fetched(self) -> Fetched | Failed:
        assert self._plan is not None and self._response is not None
        response = self._response
        if self._pauses.seconds:
            response = replace(response, waited=self._pauses.seconds)
        body = wire = b"".join(self._chunks)
        mark, truncated = Mark.BODY_CUT, self._truncated
        if self._plan.codings:
            limit = self._request.max_bytes
            with self._request.decoding:
                decoded = decode(wire, self._plan.codings, limit=limit, wire_cut=truncated)
            if isinstance(decoded, Undecodable):
                return self._failed(FailureKind.ENCODING, decoded.detail)
            body, truncated = decoded.body, decoded.truncated
            if decoded.bomb:
                mark = Mark.DECOMPRESSION_CUT
        if truncated:
            response = replace(response, marks=(*response.marks, mark))
        return Fetched(response=response, body=body, wire_body=wire, truncated=truncated)

    def _failure(self) -> Failed:
        error = self._error
        if error is None:
            # libcurl takes a head that breaks off for a response without a body
            return self._failed(FailureKind.RESET, "the connection ended within the head")
        detail = detail_of(error)
        if error[0] == pycurl.E_OPERATION_TIMEDOUT:
            if self._pauses.is_on:
                return self._out_of_memory()
            deadlines = self._deadlines
            in_connect = deadlines.connect < deadlines.total and not self._sent_at
            kind = FailureKind.TIMEOUT_CONNECT if in_connect else FailureKind.TIMEOUT_TOTAL
            return self._failed(kind, detail)
        curl = self._handle.curl
        os_errno = curl.getinfo(pycurl.OS_ERRNO)
        if is_local_shortage(error, os_errno=os_errno, address=self._address):
            detail += ": this machine has no file, port or memory left for it"
            return Failed(kind=FailureKind.BUSY, detail=detail, shortage=True)
        failed = self._failed(kind_of(error, os_errno=os_errno), detail)
        if failed.kind is not FailureKind.TLS or not self._handle.is_strict:
            return failed
        verify_result = curl.getinfo(pycurl.SSL_VERIFYRESULT)
        doubt = doubt_of(error, verify_result=verify_result, os_errno=os_errno)
        return failed if doubt is None else replace(failed, marks=(doubt,))

    def _failed(self, kind: FailureKind, detail: str) -> Failed:
        return Failed(
            kind=kind,
            detail=detail,
            address=self._address,
            status=0 if self._response is None else self._response.status,
            waited=self._pauses.seconds,
        )

    def _out_of_memory(self) -> Failed:
        self._pauses.end(self._loop.time())
        return self._failed(FailureKind.BUSY, "no memory for the body became free in time")

    # Callbacks of libcurl

    def _on_connected(self, peer: str, _local: str, _peer_port: int, _local_port: int) -> int:
        """Called when the connection is ready, TLS included, before the request is sent."""
        try:
            if not same_address(peer, self._address):
                detail = f"connected to {peer} instead of {self._address}"
                self._outcome = self._failed(FailureKind.ADDRESS_REFUSED, detail)
            elif self._sent_at:
                # libcurl would silently repeat the request over a new connection
                detail = "the connection that was left open ended without a response"
                self._outcome = self._failed(FailureKind.RESET, detail)
            else:
                self._sent_at = self._loop.time()
                self._check_later()
                return int(pycurl.PREREQFUNC_OK)
        except BaseException as exception:
            self._exception = exception
        return int(pycurl.PREREQFUNC_ABORT)

    def _on_header(self, line: bytes) -> int | None:
        """Called for each line of a head, and of the trailer of a chunked body."""
        try:
            lines = self._lines
            lines.append(line)
            if len(lines) > MAX_HEAD_LINES:
                return self._stop(self._failed(FailureKind.PROTOCOL, "too many header lines"))
            # some releases of libcurl end a trailer with a blank line too
            if line in _BLANK_LINES and self._response is None:
                return self._on_head(lines[self._head_start : -1])
        except BaseException as exception:
            self._exception = exception
            return _STOP
        return None

    def _on_head(self, lines: list[bytes]) -> int | None:
        status = parse_status(lines[0]) if lines else None
        if status is None or status == 101:
            return self._stop(self._failed(FailureKind.PROTOCOL, "not an HTTP response"))
        if status < 200:
            # RFC 9110 15.2: an interim head, the final one follows
            self._head_start = len(self._lines)
            return None
        if sum(map(len, self._lines)) > MAX_HEAD_BYTES:
            return self._stop(self._failed(FailureKind.PROTOCOL, "the head is too large"))
        request = self._request
        response = parse_head(lines, url=request.url.text, address=self._address, status=status)
        self._response = response
        decision = judge(response, request.accept_types)
        if isinstance(decision, ReadBody):
            self._plan = decision
            return None
        if request.keep_open and is_worth_draining(response):
            # reading the rest, until the next check at most, keeps the connection usable
            self._outcome = decision
            return None
        return self._stop(decision)

    def _on_body(self, chunk: bytes) -> int | None:
        try:
            size = self._size + len(chunk)
            if self._outcome is not None:
                self._size = size
                return _STOP if size > MAX_DRAINED else None
            excess = size - self._request.max_bytes
            if excess > 0:
                self._chunks.append(chunk[:-excess])
                self._truncated = True
                return _STOP
            share = self._request.share
            if share is not None and not share.grow(len(chunk)):
                assert self._response is not None
                need = max_body_size(self._response, self._request.max_bytes)
                if not share.ask(need, self._on_room):
                    return self._pause()
                share.grow(len(chunk))
            self._chunks.append(chunk)
            self._size = size
        except BaseException as exception:
            self._exception = exception
            return _STOP
        return None

    def _stop(self, outcome: Outcome) -> int:
        self._outcome = outcome
        return _STOP

    # Checks while the transfer runs

    def _check_later(self) -> None:
        self._timer = self._loop.call_later(seconds_to_check(self._limits), self._check)

    def _check(self) -> None:
        """End the transfer if it is no longer worth waiting for."""
        now = self._loop.time()
        if self._outcome is not None:
            self._abort(self._outcome)
        elif self._pauses.is_overdue(now):
            timeout = self._failed(FailureKind.TIMEOUT_TOTAL, "the body did not end in time")
            self._abort(self._out_of_memory() if self._pauses.is_on else timeout)
        else:
            trouble = None if self._pauses.is_on else self._check_rate(now)
            if trouble is None:
                self._check_later()
            else:
                self._abort(trouble)

    def _check_rate(self, now: float) -> Failed | None:
        handle = self._handle
        if self._rate_guard is None:
            earlier = handle.received
            self._rate_guard = RateGuard(self._limits, sent_at=self._sent_at, earlier=earlier)
        received = received_bytes(handle.socket)
        trouble = self._rate_guard.check(now=now, size=self._received, received=received)
        return None if trouble is None else self._failed(*trouble)

    @property
    def _received(self) -> int:
        """Bytes of head and body so far."""
        return sum(map(len, self._lines)) + self._size

    def _abort(self, outcome: Outcome) -> None:
        """End the transfer outside of libcurl's callbacks, unless it has ended."""
        if self._future is not None and self._future.cancel():
            self._outcome = outcome

    # Waiting for memory

    def _pause(self) -> int:
        """Accept nothing more for now; libcurl holds back the current piece."""
        self._pauses.begin(self._loop.time())
        self._loop.call_soon(self._extend_timeout)  # a callback may set no options
        return int(pycurl.WRITEFUNC_PAUSE)

    @property
    def _is_paused(self) -> bool:
        """Whether the transfer waits for memory; once it has ended, the handle serves another one."""
        return self._pauses.is_on and self._future is not None and not self._future.done()

    def _extend_timeout(self) -> None:
        if self._is_paused:
            self._handle.set_total_timeout(self._pauses.latest - self._started)

    def _on_room(self) -> None:
        """Called when there is memory for the rest, perhaps from a callback of another transfer."""
        self._loop.call_soon(self._resume)

    def _resume(self) -> None:
        if not self._is_paused:
            return
        self._pauses.end(self._loop.time())
        if self._rate_guard is not None:
            self._rate_guard.restart()
        try:
            self._handle.curl.pause(pycurl.PAUSE_CONT)
        except pycurl.error as error:
            self._abort(self._failed(FailureKind.RESET, detail_of(error.args)))
