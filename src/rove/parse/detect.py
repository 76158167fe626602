"""Guesses the encoding of a page that does not declare one. Only this module uses the detection library."""

from __future__ import annotations

import chardet

from rove.parse.labels import CODECS

# Encodings that hardly any page uses are left out, because guessing one of them would be wrong.
_NAMES = (
    "big5", "euc-jp", "euc-kr", "gb18030", "iso-8859-2", "iso-8859-7", "koi8-r", "koi8-u", "shift_jis", "windows-874",
    "windows-1250", "windows-1251", "windows-1252", "windows-1253", "windows-1254", "windows-1255", "windows-1256",
    "windows-1257", "windows-1258",
)  # fmt: skip
_CANDIDATES = {CODECS[name]: name for name in _NAMES}


def guess(sample: bytes) -> str | None:
    """Return the most likely encoding of a sample of text, or None if none fits."""
    result = chardet.detect(sample, include_encodings=_CANDIDATES, compat_names=False, prefer_superset=False)
    return _CANDIDATES.get(result["encoding"] or "")
