"""Recognises links to files that are not pages, such as pictures and archives, by the text of the URL. Pure.

A visit to such a file costs its domain a whole delay and brings no text. So links whose path ends in a known extension
are not taken. docs/urls.md shows the table and says what is not in it.

>>> file_types_with(("dat",)).extension("https://a.test/Photo.JPG?w=800")
'jpg'
>>> file_types_with(()).extension("https://a.test/wiki/File:Photo.jpg")
''
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from functools import lru_cache

from rove.errors import UsageError

# An extension is listed only if pages practically never end in it. So `js` is missing (/wiki/Node.js), like `json`
# (/docs/package.json), `xml`, `css`, `csv` and `md`, which are texts, and `ai`, `com` and `ps`, which end host names.
EXTENSIONS_BY_KIND = {
    "pictures": (
        "jpg jpeg jpe jfif png apng gif webp avif svg svgz bmp ico tif tiff heic heif jp2 jxl psd xcf eps cr2 nef dng"
    ),
    "audio": "mp3 m4a m4b aac ogg oga opus flac wav wma mid midi aif aiff amr ape m3u m3u8",
    "video": "mp4 m4v mov avi wmv mkv webm flv swf mpg mpeg 3gp ogv vob rmvb",
    "documents": "pdf doc docx docm xls xlsx xlsm ppt pptx pps ppsx odt ods odp rtf epub mobi azw3 djvu chm vsd",
    "archives": "zip gz tgz bz2 xz 7z rar tar zst lzma cab jar war",
    "programs and disk images": "exe msi msix apk ipa deb rpm dmg pkg iso img bin dll xpi crx torrent",
    "fonts": "ttf otf woff woff2 eot",
    "maps, models and other data": "kml kmz gpx dwg dxf stl skp ics vcf sqlite mdb parquet",
}
BUILT_IN = frozenset(" ".join(EXTENSIONS_BY_KIND.values()).split())
MAX_EXTENSION_LENGTH = 20

_EXTENSION = re.compile(r"[a-z0-9_+~-]+", re.ASCII)
_COLONS = (":", "%3A")


class FileTypes:
    """The extensions of links that one crawl does not take."""

    __slots__ = ("_names", "_reach")

    def __init__(self, names: Iterable[str]) -> None:
        """`names`: extensions in lower case, without a dot."""
        self._names = frozenset(names)
        self._reach = 1 + max(map(len, self._names), default=0)

    def extension(self, url: str) -> str:
        """Return the extension of a canonical URL if links to it are not taken, else ''."""
        # This runs for every link, and few have a dot near the end of their path.
        path = url[: url.index("?")] if "?" in url else url
        tail = path[-self._reach :]
        if "." not in tail:
            return ""
        extension = tail[tail.rindex(".") + 1 :].lower()
        if extension not in self._names:
            return ""
        # A wiki has pages about its files (/wiki/File:X.jpg) and about types of files (/wiki/.exe).
        segment = path[path.rindex("/") + 1 :]
        is_page = segment.rindex(".") == 0 or any(colon in segment for colon in _COLONS)
        return "" if is_page else extension


@lru_cache(maxsize=16)
def file_types_with(extensions: tuple[str, ...], *, built_in: bool = True) -> FileTypes:
    """Return the table, or nothing without `built_in`, extended by a crawl's own extensions."""
    return FileTypes(BUILT_IN.union(extensions) if built_in else extensions)


def parse_extension(text: str) -> str:
    """Return an extension given with --skip-extension in lower case and without its dot."""
    extension = text.removeprefix(".").lower()
    if not _EXTENSION.fullmatch(extension) or len(extension) > MAX_EXTENSION_LENGTH:
        raise UsageError(f"{text!r} is not a file extension; write what follows the last dot of a path, such as 'dat'")
    return extension
