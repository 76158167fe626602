"""JSON in requests and responses."""

from __future__ import annotations

import asyncio
from typing import Any, TypeVar

import msgspec
from starlette.exceptions import HTTPException
from starlette.requests import ClientDisconnect, Request
from starlette.responses import Response

from rove.notation.json_text import json_text

MAX_BODY = 262_144
"""Bytes of the body of a request: some thousand domains to exclude."""
BODY_SECONDS = 10.0

T = TypeVar("T")


class Json(Response):
    """A response of JSON. Text from the web cannot break it."""

    media_type = "application/json"

    def render(self, content: Any) -> bytes:
        """Return the body."""
        return json_text(content)


def refused(status: int, sentence: str) -> Json:
    """Return a response that says why there is no other."""
    return Json({"error": sentence}, status_code=status)


async def read_body(request: Request, type: type[T]) -> T:
    """Return the JSON body of a request; raise HTTPException if it is too long, too slow or something else."""
    if not request.headers.get("content-type", "").startswith("application/json"):
        raise HTTPException(415, "the body must be JSON (Content-Type: application/json)")
    body = bytearray()
    try:
        async with asyncio.timeout(BODY_SECONDS):
            async for part in request.stream():
                body += part
                if len(body) > MAX_BODY:
                    raise HTTPException(413, f"the body is longer than {MAX_BODY:,} bytes")
    except TimeoutError:
        raise HTTPException(408, f"the body did not arrive within {BODY_SECONDS:g} s") from None
    except ClientDisconnect:
        raise HTTPException(400, "the body is not complete") from None
    try:
        return msgspec.json.decode(bytes(body), type=type)
    except (msgspec.DecodeError, msgspec.ValidationError) as error:
        raise HTTPException(400, f"the body is not what is expected: {error}") from error
