"""Which links lead to files that hold no page."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from rove.errors import UsageError
from rove.policy.file_types import BUILT_IN, EXTENSIONS_BY_KIND, file_types_with, parse_extension
from tests.urls import canonical

A = "https://www.a.test"
DOCS = Path(__file__).parents[3] / "docs"

FILES = [
    ("/photo.jpg", "jpg"),
    ("/Photo.JPG", "jpg"),
    ("/photo.jPeG", "jpeg"),
    ("/dir.d/report-2026.final.pdf", "pdf"),
    ("/photo.jpg?w=800&h=600", "jpg"),
    ("/photo.jpg?from=/page.html", "jpg"),
    ("/photo.jpg#top", "jpg"),
    ("/photo.%6Apg", "jpg"),
    ("/film.mp4?", "mp4"),
    ("/backup.tar.gz", "gz"),
    ("/page.html.zip", "zip"),
    ("/caf%C3%A9.docx", "docx"),
    ("/c:/photo.jpg", "jpg"),
    ("/a.7z", "7z"),
    ("/x.apk", "apk"),
]
PAGES = [
    *("/", "/photo", "/photo/", "/photo.jpg/", "/jpg", "/photo.", "/a.jpg.html", "/a.html", "/a.xhtml", "/a.php"),
    *("/a.aspx", "/a.jsp", "/a.cgi", "/a.txt", "/a.md", "/a.xyz", "/a.jpgx", "/a.xjpg", "/a.123", "/a.jpg,b"),
    *("/?file=photo.jpg", "/view.php?file=photo.jpg", "/view?photo.jpg", "/photo/?x=/a.zip", "/a?b?c.jpg"),
    *("/wiki/File:Photo.jpg", "/wiki/File%3APhoto.jpg", "/wiki/Datei:Photo.JPG?uselang=de", "/File:a.b.pdf"),
    *("/wiki/Node.js", "/wiki/ASP.NET", "/docs/package.json", "/who-is/example.com", "/site/character.ai"),
    *("/wiki/.exe", "/.zip", "/2026.05.12", "/release-1.2.3", "/user@example.org", "/feed.xml", "/data.csv"),
]


@pytest.mark.parametrize(("path", "extension"), FILES)
def test_a_link_to_a_file_is_known_by_the_end_of_its_path(path: str, extension: str) -> None:
    url = canonical(A + path)
    assert url is not None
    assert file_types_with(()).extension(url.text) == extension
    assert file_types_with((), built_in=False).extension(url.text) == ""


@pytest.mark.parametrize("path", PAGES)
def test_a_page_has_no_such_extension(path: str) -> None:
    url = canonical(A + path)
    assert url is not None
    assert file_types_with(()).extension(url.text) == ""


@pytest.mark.parametrize("text", ["https://example.zip/", "https://example.mov/?x", "https://zip/", "http://a.mp4:80/"])
def test_the_name_of_a_host_is_not_an_extension(text: str) -> None:
    assert file_types_with(("zip", "mp4")).extension(text) == ""


@pytest.mark.parametrize("built_in", [True, False])
def test_a_crawl_adds_extensions_of_its_own(built_in: bool) -> None:
    file_types = file_types_with(("dat", "x-very-long-name"), built_in=built_in)
    assert file_types.extension(f"{A}/a.DAT?x") == "dat"
    assert file_types.extension(f"{A}/a.x-very-long-name") == "x-very-long-name"
    assert file_types.extension(f"{A}/a.jpg") == ("jpg" if built_in else "")
    assert file_types.extension(f"{A}/wiki/File:a.dat") == ""


@pytest.mark.parametrize(
    ("text", "extension"), [("dat", "dat"), (".dat", "dat"), ("DAT", "dat"), ("7z", "7z"), ("c++", "c++")]
)
def test_an_extension_is_given_with_or_without_its_dot(text: str, extension: str) -> None:
    assert parse_extension(text) == extension


@pytest.mark.parametrize("text", ["", ".", "tar.gz", "*.dat", "a b", "a/b", "dät", "x" * 21, "a?b"])
def test_what_is_no_extension_is_refused(text: str) -> None:
    with pytest.raises(UsageError, match="is not a file extension"):
        parse_extension(text)


def test_no_extension_is_listed_twice_and_pages_have_none_of_them() -> None:
    listed = [extension for extensions in EXTENSIONS_BY_KIND.values() for extension in extensions.split()]
    assert len(listed) == len(BUILT_IN)
    assert all(parse_extension(extension) == extension for extension in listed)
    assert BUILT_IN.isdisjoint(
        ["html", "htm", "xhtml", "shtml", "php", "asp", "aspx", "jsp", "do", "cgi", "cfm", "txt"]
    )


def test_the_table_is_documented() -> None:
    section = (DOCS / "urls.md").read_text().partition("## Links to files")[2].partition("\n## ")[0]
    rows = re.findall(r"^\| ([\w, ]+) \| (`.*`) \|$", section, re.MULTILINE)
    assert {kind: re.findall(r"`(\w+)`", extensions) for kind, extensions in rows} == {
        kind: extensions.split() for kind, extensions in EXTENSIONS_BY_KIND.items()
    }
