"""The text of a page: its content, its line breaks, and that it is clean."""

from __future__ import annotations

import re

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from rove.parse.html import Document, PageSource, read_html, read_plain
from rove.parse.text import BREAK, keep_lines, tidy, tidy_line
from tests.urls import FORM


def text(html: str) -> str:
    source = PageSource(body=html.encode(), url="https://e.example/", content_type="text/html;charset=utf-8")
    return read_html(source, FORM).text


def plain(body: bytes, content_type: str | None) -> Document:
    return read_plain(PageSource(body=body, url="https://e.example/", content_type=content_type))


@pytest.mark.parametrize(
    ("html", "shown"),
    [
        ("<b>w</b>ord", "word"),
        ("w<b>or</b>d", "word"),
        ("w<b><i><a href=x>or</a></i></b>d", "word"),
        ("foo<wbr>bar", "foobar"),
        ("foo<!-- c -->bar", "foobar"),
        ("Hello <!-- -->World<!-- -->!", "Hello World!"),
        ("foo<script>x</script>bar", "foobar"),
        ("foo<img src=x alt=y>bar", "foobar"),
        ("foo<span></span>bar", "foobar"),
        ("<x-tip>w<y-z>or</y-z></x-tip>d", "word"),
        ("foo<blink>bar</blink>", "foobar"),
        ("<a>Home</a><a>News</a>", "Home News"),
        ("<a>Home</a><!-- --><a>News</a><script></script><a>Shop</a>", "Home News Shop"),
        ("<a>Home</a>, <a>News</a>", "Home, News"),
        ("<a>w</a>or<a>d</a>", "word"),
        ("foo<link><meta>bar", "foobar"),
        ("<b>one</b> <i>two</i>", "one two"),
        ("<b>one </b><i> two</i>", "one two"),
        ("x<sup>2</sup>", "x2"),
        ("<ruby>漢<rp>(</rp><rt>kan</rt><rp>)</rp></ruby>字", "漢字"),
        ("<ruby><rb>漢<rb>字<rtc><rt>kan<rt>ji</rtc></ruby>", "漢字"),
        ("<my-card>a</my-card><my-card>b</my-card>", "ab"),
        ("a &amp; b &lt;c&gt; &copy; &#233; &hearts;", "a & b <c> © é ♥"),
        ("<p>say <q>yes</q> <code>x = 1</code> <font>now</font></p>", "say yes x = 1 now"),
    ],
)
def test_inline(html: str, shown: str) -> None:
    assert text(html) == shown


@pytest.mark.parametrize(
    "html",
    [
        "<p>a</p><p>b</p>",
        "<p>a<p>b",
        "<div>a</div>b",
        "a<div>b</div>",
        "<div><div>a</div></div><div>b</div>",
        "a<br>b",
        "a<br/><br/>b",
        "a<hr>b",
        "<ul><li>a<li>b</ul>",
        "<dl><dt>a<dd>b</dl>",
        "<h1>a</h1>b",
        "<table><tr><td>a</td><td>b</td></tr></table>",
        "<table><tr><th>a</th></tr><tr><td>b</td></tr></table>",
        "<table><caption>a</caption><tr><td>b</table>",
        "<section>a</section><article>b</article>",
        "<blockquote>a</blockquote>b",
        "<details><summary>a</summary>b</details>",
        "<form>a</form>b",
        "<figure>a<figcaption>b</figcaption></figure>",
        "<button>a</button><button>b</button>",
        "<option>a</option><option>b</option>",
        "<b>a<div>b</div></b>",
        "<a href=x>a<p>b</p></a>",
        "  a \n <p> \t </p> \n <div>\n b\n</div>\n",
        "<p>a</p>&nbsp;<p>b</p>",
    ],
)
def test_blocks_are_lines(html: str) -> None:
    assert text(html) == "a\nb"


@pytest.mark.parametrize(
    ("html", "shown"),
    [
        ("<p>  a \n\t b\r\n c  </p>", "a b c"),
        ("a\fb", "a b"),
        ("a&nbsp;&nbsp;b", "a b"),
        ("&nbsp;a&nbsp;", "a"),
        ("a &nbsp; b", "a b"),
        ("<p>a    b</p><p>c  d   e</p>", "a b\nc d e"),
        ("a\u3000b", "a\u3000b"),
        ("<p>\u3000a\u2003</p>", "a"),
        ("", ""),
        (" \n ", ""),
        ("&nbsp;", ""),
    ],
)
def test_white_space(html: str, shown: str) -> None:
    assert text(html) == shown


@pytest.mark.parametrize(
    ("html", "shown"),
    [
        ("<pre>a\nb</pre>", "a\nb"),
        ("<pre>\na\n  b\n\n\n\tc  \n</pre>", "a\n  b\n    c"),
        ("x<pre>a</pre>y", "x\na\ny"),
        ("<p>x  y</p><pre>a  b</pre>", "x y\na  b"),
        ("<pre><b>def</b> f():\r\n    <i>pass</i></pre>", "def f():\n    pass"),
        ("<pre><div>a</div><div>  b</div></pre>", "a\n  b"),
        ("<pre>a<pre>  b\n c</pre></pre>", "a\n  b\n c"),
        ("<pre> &nbsp;a</pre>", "  a"),
        ("<pre> \n \n</pre>x", "x"),
        ("<pre></pre>x", "x"),
        ("<xmp><b>a\n b</xmp>", "<b>a\n b"),
        ("<listing>a\n b</listing>", "a\n b"),
        ("<plaintext>a\n<b>", "a\n<b>"),
        ("<pre hidden>a</pre>x", "x"),
        ("<pre>a<script>\nx</script></pre>", "a"),
    ],
)
def test_preformatted(html: str, shown: str) -> None:
    assert text(html) == shown


@pytest.mark.parametrize(
    "html",
    [
        "<head><title>t</title></head>a",
        "<body><title>t</title>a",
        "<script>x</script>a",
        "<style>x</style>a",
        "<template>x</template>a",
        "<noscript>x</noscript>a",
        "<noscript><p>enable <b>JavaScript</b></p></noscript>a",
        "<svg><title>x</title><text>y</text></svg>a",
        "<math><mi>x</mi></math>a",
        "<iframe>x</iframe>a",
        "<object><p>x</p></object>a",
        "<video>x</video><audio>y</audio><canvas>z</canvas>a",
        "<select><option>x<optgroup label=l><option>y</select>a",
        "<datalist><option>x</datalist>a",
        "<textarea>x</textarea>a",
        "<input value=x><img alt=y>a",
        "<p hidden>x</p>a",
        "<div hidden><p>x</p><div hidden>y</div></div>a",
        "<span hidden=hidden>x</span>a",
        "<!-- x -->a",
        "<?php x ?>a",
        "<![CDATA[x]]>a",
        "<noembed>x</noembed>a",
        "<noframes>x</noframes>a",
    ],
)
def test_not_shown(html: str) -> None:
    assert text(html) == "a"


@pytest.mark.parametrize(
    "html",
    [
        "<body hidden>a",
        "<html hidden>a",
        "<p hidden=until-found>a",
        "<p class=hidden>a",
        '<p style="display:none">a',
        "<p aria-hidden=true>a",
        "</html>a",
        "<label>a<input></label>",
        "<details>a</details>",
    ],
)
def test_shown(html: str) -> None:
    assert text(html) == "a"


@pytest.mark.parametrize(
    ("html", "shown"),
    [
        ("a\x00b", "ab"),
        ("a&#0;b", "a\ufffdb"),
        ("a&#1;b\x08c\x7fd", "abcd"),
        ("a\x0bb", "a b"),
        ("a&#27;[1m", "a[1m"),
        ("<p>&#1; a &#2;</p>", "a"),
        ("a\x85b\x9fc", "abc"),
        ("© a\x80b", "© ab"),
        ("a&#x80;b", "a€b"),
        ("a&#xD800;b", "a\ufffdb"),
        ("a\u200bb\xadc", "abc"),
        ("ver&shy;y long w\ufefford\u2060s", "very long words"),
        ("a \u200b b", "a b"),
        ("\u200b\xad", ""),
        ("ก\u200bข ກ\u200bຂ ក\u200bខ က\u200bခ", "ก\u200bข ກ\u200bຂ ក\u200bខ က\u200bခ"),
        ("ก\u200b\u200b\xad\u200bข", "ก\u200bข"),
        ("ก\u200ba\u200bข\u200b ข", "กaข ข"),
        ("می\u200cخواهم क्\u200dष 👩\u200d💻", "می\u200cخواهم क्\u200dष 👩\u200d💻"),
        ("a\u2028b\u2029c", "a\nb\nc"),
        ("<pre>a\u2028  b\xad</pre>", "a\n  b"),
        ("a&#30;b", "a\nb"),
    ],
)
def test_unprintable(html: str, shown: str) -> None:
    assert text(html) == shown


def test_lone_surrogates_are_removed() -> None:
    assert tidy("a \ud800 b") == b"a b"


KEPT = keep_lines(" ")

INVISIBLE = "\xad\ufeff\u2060"
THAI = "\u0e00-\u0eff\u1000-\u109f\u1780-\u17ff"
CHARACTERS = st.one_of(
    st.characters(max_codepoint=0x7F),
    st.characters(max_codepoint=0xFF),
    st.sampled_from(f"a  {BREAK}{BREAK}{KEPT}\x85\xa0\u3000\u2003\u2028\u200b\u200b\xad\ufeffกຂЖё漢😀\ud800\udfff"),
)


def one_by_one(text: str) -> str:
    """A slow reference version of tidy() that looks at each character."""

    def meant(char: str) -> str:
        if char in "\t\n\v\f\r\x1c\x1d\x1f\xa0":
            return " "
        if char in INVISIBLE:
            return ""
        is_control = char < " " or "\x7f" <= char <= "\x9f" or "\ud800" <= char <= "\udfff"
        return "" if is_control else char

    text = re.sub("[\u2028\u2029]", BREAK, re.sub(f"[{INVISIBLE}]", "", text))
    text = re.sub("\u200b+", "\u200b", text)
    text = re.sub(f"(?<![{THAI}])\u200b|\u200b(?![{THAI}])", "", text)
    lines = ("".join(map(meant, line)).strip() for line in text.split(BREAK))
    single = (re.sub(" +", " ", line).replace(KEPT, " ").rstrip() for line in lines)
    return "\n".join(filter(None, single))


@settings(deadline=None)
@given(st.lists(CHARACTERS).map("".join))
@example("a\x85\xa0b\x7f")
@example("Ж\x85\xa0b\x7f\n\tc")
@example(f"\x85 {KEPT}\x85{KEPT}a \x85")
def test_every_character_is_handled(text: str) -> None:
    assert tidy(text) == one_by_one(text).encode()
    assert tidy_line(text, 10) == " ".join(one_by_one(text[:50]).split())[:10].rstrip()


@pytest.mark.parametrize(
    ("raw", "line"),
    [
        ("  a \n b\t", "a b"),
        ("a\x1eb", "a b"),
        ("a\xa0\u3000b", "a b"),
        ("", ""),
        ("x" * 12, "x" * 10),
        ("123456789 abc", "123456789"),
    ],
)
def test_line(raw: str, line: str) -> None:
    assert tidy_line(raw, 10) == line


@pytest.mark.parametrize(
    ("body", "content_type", "shown"),
    [
        (b"a\nb", None, "a\nb"),
        (b"a\r\n\r\n  b\rc \n", None, "a\n  b\nc"),
        (b"a\tb", None, "a    b"),
        (b"<b>x</b> & y", None, "<b>x</b> & y"),
        (b"a\x00\x07b", None, "ab"),
        (b"\xef\xbb\xbfa", None, "a"),
        ("Привет".encode("koi8-r"), "text/plain; charset=koi8-r", "Привет"),
        (b"", None, ""),
    ],
)
def test_plain(body: bytes, content_type: str | None, shown: str) -> None:
    assert plain(body, content_type).text == shown


def test_plain_text_has_no_title_and_no_links() -> None:
    document = plain(b"<title>t</title><a href=http://e.example/>", "text/plain")
    assert (document.title, document.links, document.noindex, document.nofollow) == ("", (), False, False)
