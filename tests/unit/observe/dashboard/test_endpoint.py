"""Endpoints: every error becomes a sentence with the right status."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any

import pytest
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.types import Message

from rove.errors import FrontierError, RoveError, Unreachable, UsageError
from rove.observe.dashboard.endpoint import changing, reading
from rove.observe.dashboard.json_response import MAX_BODY, read_body


def request(*messages: Message, headers: dict[str, str] | None = None) -> Request:
    """Return a request that brings these messages, and then waits for ever."""
    waiting = list(messages)

    async def receive() -> Message:
        if waiting:
            return waiting.pop(0)
        return await asyncio.get_running_loop().create_future()  # type: ignore[no-any-return]

    given = [(name.encode(), value.encode()) for name, value in (headers or {}).items()]
    return Request({"type": "http", "path": "/api/x", "method": "GET", "headers": given}, receive)


def part(body: bytes, *, more: bool = False) -> Message:
    return {"type": "http.request", "body": body, "more_body": more}


def answering(result: Any) -> Callable[[Request], Any]:
    async def answer(_: Request) -> Any:
        if isinstance(result, Exception):
            raise result
        return result

    return answer


@pytest.mark.parametrize(
    ("result", "status", "said"),
    [
        ({"a": "\u202e"}, 200, b'{"a":"\\u202e"}'),
        (UsageError("what is that?"), 400, b"what is that?"),
        (HTTPException(404, "it is not there"), 404, b"it is not there"),
        (Unreachable("the database is away"), 503, b"the database is away"),
        (FrontierError("the database failed"), 503, b"the database failed"),
        (RoveError("no"), 500, b'{"error":"no"}'),
        (KeyError("a bug"), 500, b"unexpected KeyError: 'a bug'"),
    ],
)
async def test_a_result_or_an_error_becomes_json(result: Any, status: int, said: bytes) -> None:
    for endpoint in (reading(answering(result)), changing(answering(result))):
        response = await endpoint(request())
        assert response.status_code == status and said in response.body


async def test_a_read_that_takes_too_long_is_given_up() -> None:
    async def answer(_: Request) -> None:
        await asyncio.sleep(60)

    response = await reading(answer, seconds=0.01)(request())
    assert response.status_code == 503 and b"no answer within 0.01 s" in response.body


async def test_a_read_ends_when_the_client_is_gone_and_a_change_does_not() -> None:
    went_on = asyncio.Event()
    cancelled = asyncio.Event()

    async def answer(_: Request) -> str:
        try:
            await asyncio.sleep(0.05)
        except asyncio.CancelledError:
            cancelled.set()
            raise
        went_on.set()
        return "done"

    gone = {"type": "http.disconnect"}
    response = await reading(answer)(request(part(b""), gone))
    assert response.status_code == 499
    await cancelled.wait()
    assert (await changing(answer)(request(part(b""), gone))).status_code == 200
    assert went_on.is_set()


@pytest.mark.parametrize(
    ("messages", "status"),
    [
        ([part(b"[1, ", more=True), part(b"2]")], 200),
        ([part(b"x" * MAX_BODY, more=True), part(b"x")], 413),
        ([part(b"[1, ", more=True), {"type": "http.disconnect"}], 400),
        ([part(b"[1, ")], 400),
        ([part(b'{"a": 1}')], 400),
    ],
)
async def test_a_body_is_read_up_to_a_limit(messages: list[Message], status: int) -> None:
    async def answer(given: Request) -> list[int]:
        return await read_body(given, list[int])

    response = await changing(answer)(request(*messages, headers={"content-type": "application/json"}))
    assert response.status_code == status


async def test_a_body_that_is_not_json_is_refused() -> None:
    async def answer(given: Request) -> list[int]:
        return await read_body(given, list[int])

    assert (await changing(answer)(request(part(b"[1]"), headers={"content-type": "text/plain"}))).status_code == 415
