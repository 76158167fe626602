"""Parameters that the canonical form removes from URLs: session ids and click trackers.

The built-in list must not change while a crawl is running or paused: URLs that are already in its frontier would get
other fingerprints and be fetched again. A crawl's own additions are part of its settings. docs/urls.md explains the
choice.

>>> ignored_params_with(()).strip("http://a.test/x;jsessionid=1?id=3&utm_source=news")
'http://a.test/x?id=3'
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from functools import lru_cache

from rove.errors import UsageError

MAX_NAME_LENGTH = 100

# Only names that never select content, in the case that programs write them. Names that mean content on some sites
# (ref, cid, source, share) are not listed.
BUILT_IN_NAMES = (
    # Google Analytics and compatible tools
    "utm_*", "gclid", "gclsrc", "dclid", "gbraid", "wbraid", "gad_source", "gad_campaignid", "srsltid", "_ga", "_gl",
    # Meta, X, Microsoft, Yandex, TikTok, LinkedIn, Reddit
    "fbclid", "fb_action_ids", "fb_action_types", "fb_source", "fb_ref", "igshid", "igsh", "twclid", "ref_src",
    "msclkid", "yclid", "ysclid", "_openstat", "ttclid", "li_fat_id", "rdt_cid",
    # newsletters and campaigns: Mailchimp, Marketo, HubSpot, Matomo, Vero, Adobe and others
    "mc_cid", "mc_eid", "mkt_tok", "_hsenc", "_hsmi", "__hssc", "__hstc", "__hsfp", "hsCtaTracking", "mtm_*",
    "pk_campaign", "pk_kwd", "pk_source", "pk_medium", "vero_id", "vero_conv", "oly_anon_id", "oly_enc_id", "s_kwcid",
    "ml_subscriber", "ml_subscriber_hash", "rb_clickid", "wickedid", "_branch_match_id", "_kx", "dicbo", "tblci",
    "guccounter", "guce_referrer", "guce_referrer_sig",
    # sessions: Java, PHP, ASP, ColdFusion, osCommerce, Zen Cart
    "jsessionid", "JSESSIONID", "PHPSESSID", "phpsessid", "ASPSESSIONID*", "CFTOKEN", "cftoken", "osCsid", "zenid",
)  # fmt: skip
# These names are session ids only with a long random value (or CFTOKEN beside CFID). Elsewhere sid may be a story and
# cfid a file.
_SESSION_IDS = "sid|SID|sessid|SESSID|sessionid|sessionId|session_id"
_NAMES_WITH_VALUE = (*_SESSION_IDS.split("|"), "cfid", "CFID")
_WITH_VALUE = (
    rf"(?:{_SESSION_IDS})=[0-9A-Za-z]{{32,}}+(?=[&;]|$)|"
    r"(?:CFID|cfid)=[^&;]*+[&;](?:CFTOKEN|cftoken)=[^&;]*+"
)
_NAME = re.compile(r"[A-Za-z0-9_.~:@$!+,\[\]-]+\*?|\*", re.ASCII)


class IgnoredParams:
    """The parameters that one crawl removes from its URLs."""

    __slots__ = ("_in_path", "_in_query", "search")

    def __init__(self, names: Sequence[str]) -> None:
        any_name = _any_of(names)
        candidates = (*names, *_NAMES_WITH_VALUE)
        first_letters = re.escape("".join({name[0] for name in candidates}))
        self.search = re.compile(rf"[?&;](?=[{first_letters}]){_any_of(candidates)}").search
        """A quick test: if it finds nothing in a URL, `strip` would not change it."""
        self._in_query = re.compile(rf"(?<=[?&;])(?:{any_name}(?:=[^&;]*+)?|{_WITH_VALUE})(?:[&;]|$)")
        self._in_path = re.compile(rf";{any_name}=[^/;]*+")

    def strip(self, url: str) -> str:
        """Return the URL without the ignored parameters; the result may no longer be in canonical form."""
        path, mark, query = url.partition("?")
        if ";" in path:
            path = self._in_path.sub("", path)
        if not mark:
            return path
        rest = self._in_query.sub("", mark + query)
        if rest[-1] in "&;" and query[-1] not in "&;":
            rest = rest[:-1]
        return path + rest

    def names_in(self, url: str) -> list[str]:
        """Return the names of the parameters that `strip` removes, each once, in order of appearance."""
        path, mark, query = url.partition("?")
        params = [match[0][1:] for match in self._in_path.finditer(path)]
        params += [match[0] for match in self._in_query.finditer(mark + query)]
        return list(dict.fromkeys(re.split(r"[=&;]", text)[0] for text in params))


@lru_cache(maxsize=16)
def ignored_params_with(names: tuple[str, ...]) -> IgnoredParams:
    """Return the built-in list, extended by a crawl's own names."""
    return IgnoredParams((*BUILT_IN_NAMES, *names))


def parse_names(given: Sequence[str]) -> tuple[str, ...]:
    """Check the names given with --drop-param and return them sorted, each once; raise UsageError for a bad one."""
    for text in given:
        if not _NAME.fullmatch(text) or len(text) > MAX_NAME_LENGTH:
            raise UsageError(
                f"--drop-param {text!r} is not a parameter name; write the name as it appears before '=' in URLs, "
                "with a * at the end to match every name that starts like it"
            )
        if text == "*":
            raise UsageError("--drop-param '*' would remove every parameter")
    return tuple(sorted(set(given)))


def _any_of(names: Iterable[str]) -> str:
    """Return a pattern that matches any of the names in full, as a tree of letters: twice as fast as alternatives."""
    branches: dict[str, list[str]] = {}
    for name in names:
        if name == "*":
            return "[^=&;?/]*+"
        branches.setdefault(name[:1], []).append(name[1:])
    return "(?:" + "|".join(_branch(first, rest) for first, rest in branches.items()) + ")"


def _branch(first: str, rest: Sequence[str]) -> str:
    return re.escape(first) + _any_of(rest) if first else "(?=[=&;]|$)"
