"""The last resort of charset.py: guessing the encoding of a page that does not say it.

Apart, since it is the one place that knows the detecting library.
"""

from __future__ import annotations

import chardet

_CANDIDATES = {
    # Codecs of Python, and the encodings of the web that they stand for. What is not seen on the
    # web is left out: a guess at it would be wrong.
    "big5hkscs": "big5",
    "cp1250": "windows-1250",
    "cp1251": "windows-1251",
    "cp1252": "windows-1252",
    "cp1253": "windows-1253",
    "cp1254": "windows-1254",
    "cp1255": "windows-1255",
    "cp1256": "windows-1256",
    "cp1257": "windows-1257",
    "cp1258": "windows-1258",
    "cp874": "windows-874",
    "cp932": "shift_jis",
    "cp949": "euc-kr",
    "euc_jis_2004": "euc-jp",
    "gb18030": "gb18030",
    "iso8859-2": "iso-8859-2",
    "iso8859-7": "iso-8859-7",
    "koi8-r": "koi8-r",
    "koi8-u": "koi8-u",
}


def guess(sample: bytes) -> str | None:
    """The encoding that a sample of text most likely is in, or None when nothing fits."""
    found = chardet.detect(
        sample, include_encodings=_CANDIDATES, compat_names=False, prefer_superset=False
    )
    return _CANDIDATES.get(found["encoding"] or "")
