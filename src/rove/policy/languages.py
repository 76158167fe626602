"""The names of languages, and which links come first in a crawl that prefers some languages.

A link takes the rank of the page that it was found on, because its own language is not known before it is fetched.
Nothing is refused: links of other pages wait behind, and so do links that look like a trap, whatever their page. An
endless calendar in a preferred language would hold up the rest of its site for ever otherwise.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable
from typing import Final

from rove.errors import UsageError
from rove.model.languages import Language

OTHER_LANGUAGE: Final = 1 << 18
"""Levels of depth by which a link waits behind those of pages in a preferred language: more than any site is deep."""
LEAST_PERCENT: Final = 20
"""A page is in a language if at least this share of its text is."""

# ISO 639-1 and 639-3 of the languages that can be told.
_TWO_LETTERS = """
aa:aar ab:abk af:afr ak:aka am:amh ar:ara as:asm ay:aym az:aze ba:bak be:bel bg:bul bi:bis bn:ben bo:bod br:bre bs:bos
ca:cat co:cos cs:ces cy:cym da:dan de:deu dv:div dz:dzo el:ell en:eng eo:epo es:spa et:est eu:eus fa:fas fi:fin fj:fij
fo:fao fr:fra fy:fry ga:gle gd:gla gl:glg gn:grn gu:guj gv:glv ha:hau he:heb hi:hin hr:hrv ht:hat hu:hun hy:hye ia:ina
id:ind ie:ile ig:ibo ik:ipk is:isl it:ita iu:iku ja:jpn jv:jav ka:kat kk:kaz kl:kal km:khm kn:kan ko:kor ks:kas ku:kur
ky:kir la:lat lb:ltz lg:lug ln:lin lo:lao lt:lit lv:lav mg:mlg mi:mri mk:mkd ml:mal mn:mon mr:mar ms:msa mt:mlt my:mya
na:nau ne:nep nl:nld nn:nno no:nor nr:nbl ny:nya oc:oci om:orm or:ori pa:pan pl:pol ps:pus pt:por qu:que rm:roh rn:run
ro:ron ru:rus rw:kin sa:san sd:snd sg:sag si:sin sk:slk sl:slv sm:smo sn:sna so:som sq:sqi sr:srp ss:ssw st:sot su:sun
sv:swe sw:swa ta:tam te:tel tg:tgk th:tha ti:tir tk:tuk tl:tgl tn:tsn to:ton tr:tur ts:tso tt:tat ug:uig uk:ukr ur:urd
uz:uzb ve:ven vi:vie vo:vol wo:wol xh:xho yi:yid yo:yor za:zha zh:zho zu:zul
"""
_THREE_LETTERS = "bih ceb chr crs haw hmn kha lif mfe nso sco syr war"

LANGUAGE_CODES: Final = {
    **dict(pair.split(":") for pair in _TWO_LETTERS.split()),
    **{code: code for code in _THREE_LETTERS.split()},
}
"""The short code of each language, and its code of ISO 639-3."""
_KNOWN: Final = frozenset(LANGUAGE_CODES.values())


def parse_languages(text: str) -> tuple[str, ...]:
    """Parse a list of languages; raise UsageError if one is not known.

    >>> parse_languages("de, fra")
    ('deu', 'fra')
    """
    codes: dict[str, None] = {}
    for part in text.split(","):
        word = part.strip().lower()
        code = word if word in _KNOWN else LANGUAGE_CODES.get(word)
        if code is None:
            raise UsageError(
                f"{part.strip()!r} is not the code of a language that rove can tell; write codes of ISO 639-1 or "
                "639-3, separated by commas, such as de,fr or deu,fra"
            )
        codes[code] = None
    return tuple(codes)


def is_in(languages: Iterable[Language], wanted: Collection[str]) -> bool:
    """Whether a page with these languages is in one of those that are wanted."""
    return any(code in wanted and percent >= LEAST_PERCENT for code, percent in languages)
