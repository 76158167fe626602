"""A site whose every text tries to command the terminal, with a copy, redirects and failures among its pages."""

from __future__ import annotations

import re

from tests.acceptance.site import Reply

ESCAPES = "\x1b]0;owned\x07\x1b[2J\x9b31m\x7f"
"""Sets the title of a terminal and clears it, with C0 and C1 controls."""
REVERSED = "\u202egpj.exe\u2066\u2028forged\u200f\ufeff"
HOSTILE = ESCAPES + REVERSED
UNSAFE = re.compile(
    "[\x00-\x08\x0b-\x1f\x7f-\x9f\u061c\u200e\u200f\u2028-\u202e\u2066-\u206f\ufeff\ufff9-\ufffb\ud800-\udfff]"
)
"""What a terminal must not get, apart from tabs and line feeds."""
TEXT = "The same words on two pages of this site, and enough of them to be stored once. " * 8
HOST = "hostile.test"
PAGES = ["/", "/copy", "/redirect", "/to-nowhere", "/type", "/missing", "/reset", f"/private/{REVERSED}"]


def _header(text: str) -> str:
    """Return a header value whose bytes are this text in UTF-8."""
    return text.encode().decode("latin-1")


def _page(body: str) -> Reply:
    return Reply(f"<title>Title {HOSTILE} &#27;[2J &#x9b;31m &#x202e;</title>{body}<p>{HOSTILE} {TEXT}</p>")


ROBOTS = f"# {HOSTILE}\nUser-agent: *\nDisallow: /private/{REVERSED}\nDisallow: /{ESCAPES}\n"
LINKS = "".join(f'<a href="{path}"></a>' for path in (*PAGES, f"/{HOSTILE}?q={HOSTILE}"))
LINKS += f'<a href="/{HOSTILE}.pdf"></a>'
ANSWERS = {
    f"{HOST}/robots.txt": Reply(ROBOTS, type="text/plain"),
    f"{HOST}/": _page(LINKS),
    f"{HOST}/copy": _page(LINKS),
    f"{HOST}/redirect": Reply(status=301, headers={"Location": _header(f"/target{HOSTILE}")}),
    f"{HOST}/to-nowhere": Reply(status=302, headers={"Location": _header(f"mailto:{HOSTILE}")}),
    f"{HOST}/type": Reply("x", type=_header(f"application/{HOSTILE}")),
    f"{HOST}/reset": Reply(reset=True),
}
