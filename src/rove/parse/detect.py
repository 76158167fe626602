"""Guess the encoding of a page that does not declare one. Only this module uses the detection library."""

from __future__ import annotations

import chardet

_CANDIDATES = {
    # Python codecs and the web encodings that they stand for. Encodings that are not used on the web are left out,
    # because guessing one of them would be wrong.
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
    """Return the most likely encoding of a sample of text, or None if none fits."""
    result = chardet.detect(sample, include_encodings=_CANDIDATES, compat_names=False, prefer_superset=False)
    return _CANDIDATES.get(result["encoding"] or "")
