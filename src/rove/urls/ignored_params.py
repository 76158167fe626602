"""Parameters that the canonical form leaves out of URLs: session ids, and marks that tell where a click came from.

Pure. The built-in list is frozen with the version of the canonical form, since a crawl whose list changed would not
know its own URLs any more; a crawl's own additions are in its settings. docs/urls.md says what is dropped, what is not,
and why.

>>> drops_of(2, ()).strip("http://a.test/x;jsessionid=1?id=3&utm_source=news")
'http://a.test/x?id=3'
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from functools import lru_cache

from rove.errors import UsageError

CANONICAL_VERSION = 2
"""What a new crawl is started with."""
CANONICAL_VERSIONS = (1, 2)
LONGEST_NAME = 100

# Names that mean one thing wherever they stand, in the case in which programs write them. What means content on some
# site (ref, cid, source, share) is not here.
_NAMES = (
    # Google and those who count like it
    "utm_*", "gclid", "gclsrc", "dclid", "gbraid", "wbraid", "gad_source", "gad_campaignid", "srsltid", "_ga", "_gl",
    # Meta, X, Microsoft, Yandex, TikTok, LinkedIn, Reddit
    "fbclid", "fb_action_ids", "fb_action_types", "fb_source", "fb_ref", "igshid", "igsh", "twclid", "ref_src",
    "msclkid", "yclid", "ysclid", "_openstat", "ttclid", "li_fat_id", "rdt_cid",
    # letters and campaigns: Mailchimp, Marketo, HubSpot, Matomo, Vero, Adobe and others
    "mc_cid", "mc_eid", "mkt_tok", "_hsenc", "_hsmi", "__hssc", "__hstc", "__hsfp", "hsCtaTracking", "mtm_*",
    "pk_campaign", "pk_kwd", "pk_source", "pk_medium", "vero_id", "vero_conv", "oly_anon_id", "oly_enc_id", "s_kwcid",
    "ml_subscriber", "ml_subscriber_hash", "rb_clickid", "wickedid", "_branch_match_id", "_kx", "dicbo", "tblci",
    "guccounter", "guce_referrer", "guce_referrer_sig",
    # sessions: Java, PHP, ASP, ColdFusion, osCommerce, Zen Cart
    "jsessionid", "JSESSIONID", "PHPSESSID", "phpsessid", "ASPSESSIONID*", "CFTOKEN", "cftoken", "osCsid", "zenid",
)  # fmt: skip
# Names that mean a session only with such a value: elsewhere sid is a story, cfid a file.
_SIDS = "sid|SID|sessid|SESSID|sessionid|sessionId|session_id"
_SESSIONS = (*_SIDS.split("|"), "cfid", "CFID")
_WITH_VALUE = (
    rf"(?:{_SIDS})=[0-9A-Za-z]{{32,}}+(?=[&;]|$)",
    r"(?:CFID|cfid)=[^&;]*+[&;](?:CFTOKEN|cftoken)=[^&;]*+",
)
_NAME = re.compile(r"[A-Za-z0-9_.~:@$!+,\[\]-]+\*?|\*", re.ASCII)


class IgnoredParams:
    """What one crawl leaves out of its URLs."""

    __slots__ = ("_in_path", "_in_query", "search")

    def __init__(self, names: Sequence[str]) -> None:
        some, with_value = _any_of(names), "|".join(_WITH_VALUE)
        looked_at = (*names, *_SESSIONS)
        firsts = re.escape("".join({name[0] for name in looked_at}))
        self.search = re.compile(rf"[?&;](?=[{firsts}]){_any_of(looked_at)}").search
        """Finds nothing in most URLs, and then there is nothing to strip."""
        self._in_query = re.compile(rf"(?<=[?&;])(?:{some}(?:=[^&;]*+)?|{with_value})(?:[&;]|$)")
        self._in_path = re.compile(rf";{some}=[^/;]*+")

    def strip(self, url: str) -> str:
        """A URL without what is dropped; it may have to be put into canonical form again."""
        path, mark, query = url.partition("?")
        if ";" in path:
            path = self._in_path.sub("", path)
        if not mark:
            return path
        kept = self._in_query.sub("", mark + query)
        if kept[-1] in "&;" and query[-1] not in "&;":
            kept = kept[:-1]
        return path + kept

    def dropped(self, url: str) -> list[str]:
        """The names of the parameters that `strip` takes out, each once, in order."""
        path, mark, query = url.partition("?")
        found = [match[0][1:] for match in self._in_path.finditer(path)]
        found += [match[0] for match in self._in_query.finditer(mark + query)]
        return list(dict.fromkeys(re.split(r"[=&;]", text)[0] for text in found))


@lru_cache(maxsize=16)
def drops_of(version: int, names: tuple[str, ...]) -> IgnoredParams | None:
    """What a version of the canonical form drops, with a crawl's own names; None where it drops nothing."""
    return None if version < 2 else IgnoredParams((*_NAMES, *names))


def parse_names(given: Sequence[str]) -> tuple[str, ...]:
    """The names of parameters as they are kept, from what a person wrote; UsageError if one means nothing, or all."""
    for text in given:
        if not _NAME.fullmatch(text) or len(text) > LONGEST_NAME:
            raise UsageError(
                f"--drop-param {text!r} is not the name of a parameter; write one as it stands in URLs before '=', "
                "with * at the end for all that begin like it"
            )
        if text == "*":
            raise UsageError("--drop-param '*' would drop every parameter")
    return tuple(sorted(set(given)))


def _any_of(names: Iterable[str]) -> str:
    """A pattern of whole names, as a tree of their letters: twice as fast as one after the other."""
    branches: dict[str, list[str]] = {}
    for name in names:
        if name == "*":
            return "[^=&;?/]*+"
        branches.setdefault(name[:1], []).append(name[1:])
    return "(?:" + "|".join(_branch(first, rest) for first, rest in branches.items()) + ")"


def _branch(first: str, rest: Sequence[str]) -> str:
    return re.escape(first) + _any_of(rest) if first else "(?=[=&;]|$)"
