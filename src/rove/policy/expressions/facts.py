"""The facts that expressions name, with their types, and where each of them is known."""

from __future__ import annotations

import enum
from collections.abc import Callable
from dataclasses import dataclass

from rove.urls.domain import domain_of, is_address
from rove.urls.origin import SHORTEST_ORIGIN, host_and_port, origin_of

LONGEST_EXTENSION = 20


class FactKind(enum.StrEnum):
    """The types of facts."""

    TEXT = "text"
    NUMBER = "number"
    FLAG = "true or false"


class Place(enum.StrEnum):
    """Where an expression is used. This decides which facts it may name."""

    LINK = "--accept and --reject"
    PAGE = "--store-if and --follow-if"
    LEDGER = "--where"


class Subject:
    """What an expression is about: a URL, and what is known of its page."""

    __slots__ = ("depth", "same_domain", "same_host", "status", "text", "title", "type", "url")

    def __init__(
        self,
        url: str,
        *,
        depth: int = 0,
        same_domain: bool = True,
        same_host: bool = True,
        status: int = 0,
        type: str = "",
        title: str = "",
        text: bytes = b"",
    ) -> None:
        """`url` is in canonical form, `text` in UTF-8. What is not known has a value that no expression reads."""
        self.url = url
        self.depth = depth
        self.same_domain = same_domain
        self.same_host = same_host
        self.status = status
        self.type = type
        self.title = title
        self.text = text


@dataclass(frozen=True, slots=True)
class Fact:
    """One fact: its type, where it is known, and how it is read."""

    kind: FactKind
    known: frozenset[Place]
    read: Callable[[Subject], str | int | bool]


def host_of(url: str) -> str:
    """Return the host of a canonical URL; an IPv6 address keeps its brackets."""
    return host_and_port(origin_of(url))[0]


def tld_of(host: str) -> str:
    """Return the last label of a host name, '' for an address."""
    return "" if is_address(host) else host.rpartition(".")[2]


def path_of(url: str) -> str:
    """Return the path of a canonical URL.

    >>> path_of("https://a.test/b/c.html?d=/e")
    '/b/c.html'
    """
    start, end = url.index("/", SHORTEST_ORIGIN), url.find("?")
    return url[start:] if end < 0 else url[start:end]


def query_of(url: str) -> str:
    """Return the query of a canonical URL without its question mark, '' if there is none."""
    return url.partition("?")[2]


def extension_of(url: str) -> str:
    """Return the extension of the last part of a canonical URL's path in lower case, '' if it has none.

    >>> extension_of("https://a.test/Photo.JPG?w=8"), extension_of("https://a.test/v1.2/"), extension_of("https://a.test/.x")
    ('jpg', '', '')
    """
    name, _, extension = path_of(url).rpartition("/")[2].rpartition(".")
    return extension.lower() if name and len(extension) <= LONGEST_EXTENSION and extension.isalnum() else ""


_ANYWHERE = frozenset(Place)
_CRAWLING = frozenset({Place.LINK, Place.PAGE})
_READ = frozenset({Place.PAGE, Place.LEDGER})

FACTS = {
    "host": Fact(FactKind.TEXT, _ANYWHERE, lambda subject: host_of(subject.url)),
    "domain": Fact(FactKind.TEXT, _ANYWHERE, lambda subject: domain_of(host_of(subject.url))),
    "tld": Fact(FactKind.TEXT, _ANYWHERE, lambda subject: tld_of(host_of(subject.url))),
    "scheme": Fact(FactKind.TEXT, _ANYWHERE, lambda subject: subject.url[: subject.url.index(":")]),
    "path": Fact(FactKind.TEXT, _ANYWHERE, lambda subject: path_of(subject.url)),
    "query": Fact(FactKind.TEXT, _ANYWHERE, lambda subject: query_of(subject.url)),
    "extension": Fact(FactKind.TEXT, _ANYWHERE, lambda subject: extension_of(subject.url)),
    "url_length": Fact(FactKind.NUMBER, _ANYWHERE, lambda subject: len(subject.url)),
    "depth": Fact(FactKind.NUMBER, _CRAWLING, lambda subject: subject.depth),
    "seed": Fact(FactKind.FLAG, _CRAWLING, lambda subject: subject.depth == 0),
    "same_domain": Fact(FactKind.FLAG, frozenset({Place.LINK}), lambda subject: subject.same_domain),
    "same_host": Fact(FactKind.FLAG, frozenset({Place.LINK}), lambda subject: subject.same_host),
    "status": Fact(FactKind.NUMBER, _READ, lambda subject: subject.status),
    "type": Fact(FactKind.TEXT, _READ, lambda subject: subject.type),
    "title": Fact(FactKind.TEXT, _READ, lambda subject: subject.title),
    "text_length": Fact(FactKind.NUMBER, frozenset({Place.PAGE}), lambda subject: len(subject.text.decode())),
}
"""All facts by name. docs/rules.md explains them."""
SOURCE_FACTS = frozenset({"same_domain", "same_host"})
"""The facts about the page that links to a URL. They are forgotten once the URL is in the frontier."""
