"""Lines of a seed file: a URL, a host with a path, or only a domain."""

from __future__ import annotations

import re
from collections.abc import Iterable

from rove.urls.canonical import NO_IDS, CrawlUrl, UrlForm
from rove.urls.domain import is_address, registrable_domain

_PLAIN_SEED = re.compile(r"(?:(https?)://)?((?:[a-z0-9-]+\.)+[a-z][a-z0-9-]*)/?").fullmatch
"""Matches nearly every line of most seed files: a host that the URL parser leaves unchanged unless it is Punycode."""
_MAX_PLAIN_LENGTH = 253
_HAS_SCHEME = re.compile(r"[A-Za-z][A-Za-z0-9+.-]*://")
_NOT_A_SEED = re.compile(r"\s|^[/.:@?#]")
_HOST_PART = re.compile(r"[^/?#]*")
_HOST_NAME = re.compile(r"[a-z0-9_-]+(\.[a-z0-9_-]+)*")
_SCHEME = re.compile(r"([A-Za-z][A-Za-z0-9+.-]*):(?!\d)")
_SEPARATOR = re.compile(r"[,;\t]")
LONGEST_LINE = 4_096
"""Bytes of a line in a seed file; a longer one is bad."""


def parse_seed(text: str, form: UrlForm) -> tuple[CrawlUrl, bool] | None:
    """Return the URL of a seed line and whether the line was only a domain, so that https is a guess.

    Return None if the line is not a seed.

    >>> url, assume_https = parse_seed("example.org", NO_IDS)
    >>> url.text, assume_https
    ('https://example.org/', True)
    """
    plain = _PLAIN_SEED(text)
    if plain is not None and "xn--" not in text and len(text) <= _MAX_PLAIN_LENGTH:
        scheme, host = plain.groups()
        return form.plain_host(f"{scheme or 'https'}://{host}", host, registrable_domain(host)), scheme is None
    return parse_any_seed(text, form)


def is_seed(text: str) -> bool:
    """Whether a line is a seed."""
    return parse_seed(text, NO_IDS) is not None


def parse_any_seed(text: str, form: UrlForm) -> tuple[CrawlUrl, bool] | None:
    """Do the work of parse_seed with the URL parser, for lines that are not plain hosts."""
    if _HAS_SCHEME.match(text):
        url = form.canonical(text)
        return None if url is None else (url, False)
    if _NOT_A_SEED.search(text):
        return None
    host_part = _HOST_PART.match(text)[0]  # type: ignore[index]
    url = form.canonical("https://" + text)
    if url is None or "@" in host_part or not _is_seed_host(url.host, host_part):
        return None
    has_port = ":" in host_part.rpartition("]")[2]
    return url, url.text == f"https://{url.host}/" and not has_port


def table_fields(text: str) -> list[str]:
    """Return the fields of a line that is a row of a table; nothing for a line that is not.

    A comma in the path of a URL separates nothing.

    >>> table_fields("7, example.org"), table_fields("https://example.org/a,b")
    (['7', 'example.org'], [])
    """
    scheme = _HAS_SCHEME.match(text)
    host_part = _HOST_PART.match(text, scheme.end() if scheme else 0)[0]  # type: ignore[index]
    if not _SEPARATOR.search(host_part) and not text.startswith('"') and "\t" not in text:
        return []
    fields = [field.strip().strip('"').strip() for field in _SEPARATOR.split(text)]
    return [field for field in fields if field]


def seeds_in_table_row(fields: Iterable[str]) -> list[str]:
    """Return the fields of a row that are seeds; one of each that mean the same URL."""
    found: dict[str, str] = {}
    for field in fields:
        seed = parse_seed(field, NO_IDS.in_full)
        if seed is not None:
            found.setdefault(seed[0].text, field)
    return list(found.values())


def why_not_a_seed(text: str) -> str:
    """Return why `parse_seed` refuses a text, as the end of a sentence."""
    if max(len(seeds_in_table_row(fields)) for fields in (table_fields(text), text.split())) > 1:
        return "names several domains; put each on a line of its own"
    base = "is not a domain or URL"
    if re.search(r"\s", text):
        return f"{base}: it has a space in it"
    scheme = _SCHEME.match(text)
    if scheme is not None and scheme[1].lower() not in ("http", "https"):
        return f"{base} that rove can fetch: only http and https are"
    if "@" in _HOST_PART.match(text)[0]:  # type: ignore[index]
        return f"{base}: it looks like an e-mail address"
    if "." not in text:
        return f"{base}: it has no dot"
    return base


def _is_seed_host(host: str, as_written: str) -> bool:
    """Whether a line names a host. Lists contain ranks, quotes and commas, which the URL parser would accept."""
    if is_address(host):
        return as_written.startswith((host, "["))
    is_name = _HOST_NAME.fullmatch(host) is not None
    return is_name and ("." in host or host == "localhost")
