"""Pages whose content is made by scripts, and bot walls."""

from __future__ import annotations

import json

import pytest

from rove.parse.html import Document, PageSource, read_html
from tests.urls import FORM

PROSE = "The quick brown fox jumps over the lazy dog again."
OTHER = "A second sentence that is long enough to be read."


def read(html: str) -> Document:
    return read_html(PageSource(body=html.encode(), url="https://e.example/", content_type=None), FORM)


@pytest.mark.parametrize(
    "html",
    [
        "<div id=root></div>",
        "<div id='app'><!-- x --> </div><footer>short</footer>",
        '<div id="__next"><div class=spinner></div></div>',
        "<app-root></app-root>",
        "<noscript>You need to enable JavaScript to run this app.</noscript>",
        f"<div id=root></div>{'x' * 299}",
        "<div id=root><script>render()</script><noscript><img src=x></noscript></div>",
        "<head><noscript>Please enable JavaScript</noscript></head>",
        f"<div id=root></div>{'<a href=/x></a>' * 20}",
    ],
)
def test_shells(html: str) -> None:
    assert read(html).marks == ("js-shell",)


@pytest.mark.parametrize(
    "html",
    [
        "",
        "<div id=root>text</div>",
        "<div id=roots></div>",
        "<noscript><img src=x></noscript>",
        f"<div id=root></div>{'x' * 300}",
        f"<div id=root></div>{'é' * 300}",
        "<!-- <div id=root></div> -->text",
        "<svg><noscript>javascript</noscript></svg>",
        f"<div id=root></div>{'<a href=/x>y</a> ' * 160}",
    ],
)
def test_no_shells(html: str) -> None:
    assert read(html).marks == ()


def shell(script: str) -> str:
    return f"<body>Menu<div id=root></div>{script}"


@pytest.mark.parametrize(
    ("script", "text"),
    [
        (
            f'<script id=__NEXT_DATA__ type=application/json>{{"a":[{{"b":"{PROSE}","id":"x7"}},"{OTHER}"]}}</script>',
            f"{PROSE}\n{OTHER}",
        ),
        (f'<script id=__NUXT_DATA__ type=application/json>["/path/{"x" * 50}","{PROSE}"]</script>', PROSE),
        (
            f'<script>window.__NUXT__=(function(a){{return {{t:"{PROSE}",u:a}}}}("{OTHER}"))</script>',
            f"{PROSE}\n{OTHER}",
        ),
        (
            '<script type="application/ld+json">'
            + json.dumps({"@graph": [{"@type": "Article", "author": "n" * 9, "articleBody": PROSE, "url": OTHER}]})
            + "</script>",
            PROSE,
        ),
        (
            "<script id=__NEXT_DATA__>"
            + json.dumps({"html": f"<p>{PROSE}</p>\n<p>One &amp; <b>two</b> are three, and four more.</p>"})
            + "</script>",
            f"{PROSE}\nOne & two are three, and four more.",
        ),
        (f'<script id=__NEXT_DATA__>{{"a":"{PROSE} 1 < 2","b":"{PROSE} 1 < 2"}}</script>', f"{PROSE} 1 < 2"),
        (
            '<script id=__NEXT_DATA__>{"a":"' + "日本語の文章はここにあります。" * 3 + '"}</script>',
            "日本語の文章はここにあります。" * 3,
        ),
        ("<script id=__NEXT_DATA__>{not json</script>", ""),
        ("<script id=__NEXT_DATA__>" + "[" * 100_000 + "</script>", ""),
        ("<script>var data = 'x'</script>", ""),
        (f'<div hidden><script id=__NEXT_DATA__>{{"a":"{PROSE}"}}</script></div>', PROSE),
        (f'<script type="APPLICATION/LD+JSON">{{"text":"{PROSE}"}}</script>', PROSE),
    ],
)
def test_text_of_the_data(script: str, text: str) -> None:
    document = read(shell(script))
    assert document.text == f"Menu\n{text}".rstrip()
    assert document.marks == ("js-shell",)


def test_text_of_the_data_in_the_head() -> None:
    script = f'<script id=__NEXT_DATA__>["{PROSE}"]</script>'
    assert read(f"<head>{script}</head><div id=app></div>").text == PROSE


def test_data_of_other_pages_is_not_read() -> None:
    assert read(f'<p>{"word " * 100}<script id=__NEXT_DATA__>["{PROSE}"]</script>').text == ("word " * 100).strip()


def test_bot_walls() -> None:
    wall = "<title>Just a moment...</title><script>_cf_chl_opt={}</script>"
    assert "challenged" in read(wall + "<noscript>Enable JavaScript</noscript>").marks
    assert "challenged" not in read(wall + "<p>" + "long text " * 200).marks
