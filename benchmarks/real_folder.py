"""Templates from a folder of real pages, with links that stay in the small web.

Links to the page's own host become paths of the small web, and links to other hosts lead to pages of its other hosts.
Links to files stay. A page with any other link that leads out of the small web is left out.

A crawl counts fewer of these pages than the server: those with a noindex of their own are not stored.
"""

from __future__ import annotations

import gzip
import re
import sys
from collections import Counter
from collections.abc import Callable, Sequence
from html import unescape
from pathlib import Path
from urllib.parse import urlsplit

from benchmarks.real_pages import NAME, OWN_HOST, Template
from rove.demo.draw import number
from rove.errors import UsageError
from rove.parse.html import PageSource, read_html
from rove.urls.canonical import NO_IDS

_BODY = re.compile(rb"<body(?:\s[^>]*)?>", re.I)
_LINK = re.compile(
    rb"""(<(?:a|area|link)\s(?:[^>"']|"[^"]*"|'[^']*')*?\bhref\s*=\s*|<i?frame\s(?:[^>"']|"[^"]*"|'[^']*')*?\bsrc\s*=\s*)"""
    rb"""("[^"]*"|'[^']*'|[^\s>"']+)""",
    re.I,
)
_DROPPED = re.compile(rb"<base\b[^>]*>|<meta\b[^>]*http-equiv=.?refresh[^>]*>", re.I)
_CANONICAL = re.compile(rb"""<link[^>]*rel=["']?canonical["']?[^>]*href=["']?(https?://[^"' >]+)""", re.I)
_FILE = re.compile(r"\.(?:jpe?g|png|gif|webp|svg|pdf|zip|mp[34]|docx?|xlsx?|pptx?)$", re.I)
_OTHER_HOSTS = 3
"""Links to other hosts that every page has besides its own."""

HostName = Callable[[int], str]


def pages(folder: str) -> list[bytes]:
    """Return the pages of a folder: *.html and *.html.gz."""
    files = sorted(Path(folder).glob("*.html*"))
    return [gzip.decompress(file.read_bytes()) if file.suffix == ".gz" else file.read_bytes() for file in files]


def templates(
    seed: int, folder: str, paths: Sequence[str], scheme: str, host_name: HostName, hosts: int
) -> list[Template]:
    """Return a template for each page of a folder."""
    made = [_Rewriter(seed, paths, scheme, host_name, hosts).template(page) for page in pages(folder)]
    found = [template for template in made if _stays(template)]
    if not found:
        raise UsageError(f"{folder} has no page that can be served: expected *.html or *.html.gz")
    if len(found) < len(made):
        print(f"{len(made) - len(found)} of {len(made)} pages have links that cannot be rewritten", file=sys.stderr)
    return found


def _stays(template: Template) -> bool:
    names = [b"other.test/"] * template.other_hosts
    body = template.head + template.navigation_of("a page", "own.test", names) + template.rest
    document = read_html(PageSource(body=body, url="http://own.test/", content_type=template.content_type), NO_IDS)
    return all(link.host.endswith(".test") for link in document.links)


class _Rewriter:
    def __init__(self, seed: int, paths: Sequence[str], scheme: str, host_name: HostName, hosts: int) -> None:
        self._seed = seed
        self._paths = paths
        self._scheme = scheme
        self._host_name = host_name
        self._hosts = hosts
        self._own = ""

    def template(self, page: bytes) -> Template:
        """Return a page as a template, with a few lines of its own at the start of its body."""
        page = _DROPPED.sub(b"", page)
        self._own = _host_of(page)
        page = _LINK.sub(self._rewritten, page)
        body = _BODY.search(page)
        at = body.end() if body else 0
        links = f'<a href="{self._scheme}://%b">see</a> ' * _OTHER_HOSTS
        navigation = f'<h1>{NAME.decode()}</h1><p><a href="{self._scheme}://{OWN_HOST.decode()}/">home</a> {links}</p>'
        return Template(
            content_type="text/html",
            head=page[:at],
            navigation=navigation.encode(),
            rest=page[at:],
            other_hosts=_OTHER_HOSTS,
            links_elsewhere=_OTHER_HOSTS,
        )

    def _rewritten(self, found: re.Match[bytes]) -> bytes:
        quoted = found[2]
        quote = quoted[:1] if quoted[:1] in (b'"', b"'") else b'"'
        href = unescape(quoted.strip(b"\"'").decode("latin-1")).strip()
        return found[1] + quote + self._link(href).encode("latin-1", "replace") + quote

    def _link(self, href: str) -> str:
        try:
            url = urlsplit(href)
        except ValueError:
            return "/"
        if not href or href.startswith("#") or (url.scheme and url.scheme not in ("http", "https")):
            return href.replace('"', "%22").replace("'", "%27")
        host = url.netloc.lower().removeprefix("www.")
        fragment = f"#{url.fragment}".replace('"', "").replace("'", "") if url.fragment else ""
        bits = number(self._seed, f"{host or self._own}{url.path}?{url.query}")
        path = self._paths[bits % len(self._paths)]
        if _FILE.search(url.path):
            path = f"/files/{bits % 100_000}.{url.path.rpartition('.')[2]}"
        if not host or host == self._own:
            return path + fragment
        other = self._host_name(number(self._seed, host) % self._hosts)
        return f"{self._scheme}://{other}{path}{fragment}"


def _host_of(page: bytes) -> str:
    """Return the host that a page is from: that of its canonical address, or that of most links."""
    canonical = _CANONICAL.search(page)
    if canonical:
        return _host(canonical[1])
    hosts = Counter(_host(found[2].strip(b"\"'")) for found in _LINK.finditer(page))
    del hosts[""]
    return hosts.most_common(1)[0][0] if hosts else ""


def _host(href: bytes) -> str:
    try:
        return urlsplit(href.decode("latin-1")).netloc.lower().removeprefix("www.")
    except ValueError:
        return ""
