"""Recognizes bot walls: responses that ask the visitor to prove that it is a browser, instead of the page."""

from __future__ import annotations

import re

from rove.model.outcomes import Response

_HEADERS = {
    "cf-mitigated": frozenset({"challenge"}),  # Cloudflare
    "x-amzn-waf-action": frozenset({"challenge", "captcha"}),  # AWS
    "sg-captcha": frozenset({"challenge"}),  # SiteGround
}
_ELEMENTS = (
    ("_cf_chl_opt", re.compile(r"<script[^<>]*>[^<]*_cf_chl_opt")),  # Cloudflare
    ("anubis_challenge", re.compile(r"<script id=\"anubis_challenge\"")),  # Anubis
    ("sec-if-cpt-container", re.compile(r"<div id=\"sec-if-cpt-container\"")),  # Akamai
    ("_Incapsula_Resource", re.compile(r"<iframe id=\"main-iframe\" src=\"/_Incapsula_Resource")),  # Imperva
)
"""A word of each wall's page, and the element that it must be in. Visitors of a site can write words, not elements."""
LONGEST_WALL = 1_500
"""Bytes of visible text. A longer page may be one about bot walls."""


def is_challenge(response: Response) -> bool:
    """Whether the head of a response says that it is a bot wall."""
    return any((value := response.header(name)) and value.strip().lower() in _HEADERS[name] for name in _HEADERS)


def is_challenge_page(html: str) -> bool:
    """Whether a page with little visible text is a bot wall."""
    return any(word in html and element.search(html) is not None for word, element in _ELEMENTS)
