"""Lines of a seed file: a URL, a host with a path, or only a domain."""

from __future__ import annotations

import re

from rove.urls.canonical import CrawlUrl, canonical
from rove.urls.domain import is_address, registrable_domain
from rove.urls.fingerprint import fingerprint
from rove.urls.ignored_params import IgnoredParams

_PLAIN_SEED = re.compile(r"(?:(https?)://)?((?:[a-z0-9-]+\.)+[a-z][a-z0-9-]*)/?").fullmatch
"""Matches nearly every line of most seed files: a host that the URL parser leaves unchanged unless it is Punycode."""
_MAX_PLAIN_LENGTH = 253
_HAS_SCHEME = re.compile(r"[A-Za-z][A-Za-z0-9+.-]*://")
_NOT_A_SEED = re.compile(r"\s|^[/.:@?#]")
_HOST_PART = re.compile(r"[^/?#]*")
_HOST_NAME = re.compile(r"[a-z0-9_-]+(\.[a-z0-9_-]+)*")


def parse_seed(text: str, ignored: IgnoredParams | None = None) -> tuple[CrawlUrl, bool] | None:
    """Return the URL of a seed line and whether the line was only a domain, so that https is a guess.

    Return None if the line is not a seed.

    >>> url, assume_https = parse_seed("example.org")
    >>> url.text, assume_https
    ('https://example.org/', True)
    """
    plain = _PLAIN_SEED(text)
    if plain is not None and "xn--" not in text and len(text) <= _MAX_PLAIN_LENGTH:
        return _plain_seed(*plain.groups())
    return parse_any_seed(text, ignored)


def parse_any_seed(text: str, ignored: IgnoredParams | None = None) -> tuple[CrawlUrl, bool] | None:
    """Do the work of parse_seed with the URL parser, for lines that are not plain hosts."""
    if _HAS_SCHEME.match(text):
        url = canonical(text, None, ignored)
        return None if url is None else (url, False)
    if _NOT_A_SEED.search(text):
        return None
    host_part = _HOST_PART.match(text)[0]  # type: ignore[index]
    url = canonical("https://" + text, None, ignored)
    if url is None or "@" in host_part or not _is_seed_host(url.host, host_part):
        return None
    has_port = ":" in host_part.rpartition("]")[2]
    return url, url.text == f"https://{url.host}/" and not has_port


def _plain_seed(scheme: str | None, host: str) -> tuple[CrawlUrl, bool]:
    """Make the URL of a plain host without the URL parser, in a third of the time."""
    origin = f"{scheme or 'https'}://{host}"
    text = origin + "/"
    name = registrable_domain(host)
    url = CrawlUrl(text, host, origin, name, fingerprint(name), fingerprint(text))
    return url, scheme is None


def _is_seed_host(host: str, as_written: str) -> bool:
    """Whether a line names a host. Lists contain ranks, quotes and commas, which the URL parser would accept."""
    if is_address(host):
        return as_written.startswith((host, "["))
    is_name = _HOST_NAME.fullmatch(host) is not None
    return is_name and ("." in host or host == "localhost")
