"""Decides who may read the dashboard and who may act, without I/O.

- A page of another site can make a browser send requests here. If its own name resolves to this machine (DNS
  rebinding), it could read the answers too, so requests under a foreign name are refused.
- On loopback everybody on this machine may read. On any other address, reading needs the token too.
- Actions always need the token, and a browser sends them only from the dashboard's own page.
"""

from __future__ import annotations

import hmac
import re
import secrets
from collections.abc import Collection, Mapping
from ipaddress import ip_address
from typing import NamedTuple

from rove.notation.harmless import one_line
from rove.observe.listening import ListenAddress

TOKEN_HEADER = "x-rove-token"
TOKEN_BYTES = 16
API = "/api/"
ACTIONS = "/api/actions/"
_HOST = re.compile(r"(?P<name>\[[0-9a-f:.]+\]|[^:\[\]@/\s]+)(?::[0-9]{1,5})?", re.IGNORECASE)


class Refusal(NamedTuple):
    """Why a request is not answered."""

    status: int
    sentence: str


def new_token() -> str:
    """Return a token of 128 random bits."""
    return secrets.token_urlsafe(TOKEN_BYTES)


class Access:
    """The rules of one dashboard."""

    def __init__(self, address: ListenAddress, *, token: str, names: Collection[str] = ()) -> None:
        """`names` are the host names under which the dashboard may be reached, besides its addresses."""
        self._is_loopback = address.is_loopback
        self._token = token.encode()
        self._names = {"localhost", *(_name_in(name) or name for name in names)}

    @property
    def reading_needs_token(self) -> bool:
        """Whether a reader must send the token too."""
        return not self._is_loopback

    def refusal(self, path: str, headers: Mapping[str, str]) -> Refusal | None:
        """Return why a request must not be answered; None if it may. The names of `headers` are in lower case."""
        host = headers.get("host", "")
        name = _name_in(host)
        if name is None:
            return Refusal(400, "the request names no host")
        if not self._is_own(name):
            return Refusal(
                403,
                f"this dashboard does not answer under the name {one_line(name)}; "
                f"if the name is yours, start it with --allow-host {one_line(name)}",
            )
        if not path.startswith(API):
            return None  # the page itself, which holds nothing of the crawl
        if not _is_same_origin(host, headers):
            return Refusal(403, "the request comes from another site")
        is_action = path.startswith(ACTIONS)
        if (is_action or self.reading_needs_token) and not self._has_token(headers):
            what = "actions need" if is_action else "reading from another machine needs"
            return Refusal(401, f"{what} the token that 'rove dashboard' printed at its start")
        return None

    def _is_own(self, name: str) -> bool:
        try:
            address = ip_address(name)
        except ValueError:
            return name in self._names
        # Nobody can make a browser take a site of his for one at an IP address.
        return address.is_loopback or not self._is_loopback or name in self._names

    def _has_token(self, headers: Mapping[str, str]) -> bool:
        return hmac.compare_digest(headers.get(TOKEN_HEADER, "").encode(), self._token)


def _name_in(host: str) -> str | None:
    """Return the name in a Host header without its port, which differs at the other end of an SSH tunnel.

    >>> _name_in("LocalHost.:9000"), _name_in("[::1]:80"), _name_in("a@b"), _name_in("")
    ('localhost', '::1', None, None)
    """
    match = _HOST.fullmatch(host)
    return None if match is None else match["name"].strip("[]").lower().rstrip(".")


def _is_same_origin(host: str, headers: Mapping[str, str]) -> bool:
    """Whether a browser sends the request for the dashboard's own page. Other programs send neither header."""
    site = headers.get("sec-fetch-site", "same-origin")
    origin = headers.get("origin")
    return site in ("same-origin", "none") and (origin is None or origin.partition("://")[2].lower() == host.lower())
