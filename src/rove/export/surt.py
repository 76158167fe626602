"""Sort-friendly URLs: the keys of CDXJ files and of Common Crawl's index.

The host is reversed, and what seldom tells two pages apart is dropped, in the same way as by the Python package `surt`,
with which other programs make and look up these keys.

>>> surt("https://www.Example.com:443/A//b/../c/?b=2&a=1#top")
'com,example)/a/c?a=1&b=2'
>>> surt("http://127.0.0.1:8080/")
'1,0,0,127:8080)/'
"""

from __future__ import annotations

import re
from functools import lru_cache
from urllib.parse import quote_from_bytes, unquote_to_bytes, urlsplit

from rove.urls.origin import DEFAULT_PORTS

_UNESCAPED = "!\"$&'()*+,-./:;<=>?@[\\]^_`{|}~"
_PLAIN = re.compile(r"[A-Za-z0-9!\"$&'()*+,\-./:;<=>?@\[\\\]^_`{|}~]*").fullmatch
"""Matches what the escaping leaves as it is."""
_WWW = re.compile(r"www\d*\.")
_PATH_SESSIONS = (
    re.compile(r"(.*/)\((?:[a-z]\([0-9a-z]{24}\))+\)/([^?]+\.aspx.*)", re.DOTALL),
    re.compile(r"(.*/)\([0-9a-z]{24}\)/([^?]+\.aspx.*)", re.DOTALL),
)
_QUERY_SESSIONS = tuple(
    re.compile(rf"(.*){session}(?:&(.*))?", re.DOTALL)
    for session in (
        "jsessionid=[0-9a-z]{32}",
        "phpsessid=[0-9a-z]{32}",
        "sid=[0-9a-z]{32}",
        "aspsessionid[a-z]{8}=[a-z]{24}",
        "cfid=[^&]+&cftoken=[^&]+",
    )
)
"""Session ids in a query in lower case."""


def surt(url: str) -> str:
    """Return the key of an absolute http or https URL."""
    parts = urlsplit(url)
    return f"{_host(parts.scheme, parts.netloc)}){_path(parts.path)}{_query(parts.query)}"


def surt_host(url: str) -> str:
    """Return the part of a URL's key that names its host, and its port unless that is the default.

    >>> surt_host("https://www.example.com/a")
    'com,example'
    """
    parts = urlsplit(url)
    return _host(parts.scheme, parts.netloc)


@lru_cache(maxsize=8_192)
def _host(scheme: str, netloc: str) -> str:
    host, colon, port = netloc.lower().rpartition("@")[2].rpartition(":")
    if not port.isdigit():  # there is none, or this is the end of an IPv6 address
        host, port = f"{host}{colon}{port}", ""
    host = host.strip("[]")
    if www := _WWW.match(host):
        host = host[www.end() :]
    host = ",".join(reversed(host.split(".")))
    return f"{host}:{port}" if port and int(port) != DEFAULT_PORTS.get(scheme) else host


def _path(path: str) -> str:
    kept: list[str] = []
    segments = _escaped(path).split("/")[1:] or [""]
    for segment in segments:
        if segment == ".." and kept:
            kept.pop()
        elif segment != ".":
            kept.append(segment)
    text = "/" + "/".join([segment for segment in kept[:-1] if segment] + kept[-1:]).lower()
    for session in _PATH_SESSIONS:
        if found := session.fullmatch(text):
            text = found[1] + found[2]
    return text[:-1] if len(text) > 1 and text.endswith("/") else text


def _query(query: str) -> str:
    text = _escaped(query).lower()
    for session in _QUERY_SESSIONS:
        if found := session.fullmatch(text):
            text = found[1] + (found[2] or "")
    if len(text) > 1:
        text = "&".join("=".join(pair) for pair in sorted(tuple(part.split("=", 1)) for part in text.split("&")))
    return f"?{text}" if text else ""


def _escaped(text: str) -> str:
    """Escape a text once, however often it was escaped before."""
    if "%" not in text and _PLAIN(text):
        return text
    data = text.encode("utf-8", "surrogatepass")
    while (plain := unquote_to_bytes(data)) != data:
        data = plain
    return quote_from_bytes(data, safe=_UNESCAPED)
