"""What a site states about the use of a page is recorded, and for training it decides whether the page is kept."""

from __future__ import annotations

import pytest
from msgspec.structs import replace

from rove.model.outcomes import Fetched
from rove.model.usage import Purpose
from tests.unit.crawl.scripted import ROBOTS, A, World, page, robots

TEXT = "<p>Some text."


def answer(html: str = TEXT, **headers: str) -> Fetched:
    """Return a page with more headers."""
    fetched = page(html)
    more = [(name.replace("_", "-"), value) for name, value in headers.items()]
    return replace(fetched, response=replace(fetched.response, headers=[*fetched.response.headers, *more]))


# robots.txt, page, and what they state.
SOURCES = {
    "content-usage": ("", answer(Content_Usage="train-ai=n"), "train-ai=n"),
    "robots-content-usage": ("User-agent: *\nContent-Usage: / train-ai=n", answer(), "train-ai=n"),
    "content-signal": ("", answer(Content_Signal="ai-train=no, search=yes"), "search=y train-ai=n"),
    "robots-content-signal": ("User-agent: *\nContent-Signal: ai-train=no", answer(), "train-ai=n"),
    "tdm-header": ("", answer(TDM_Reservation="1"), "train-ai=n"),
    "tdm-meta": ("", answer(f'<meta name="TDM-reservation" content="1">{TEXT}'), "train-ai=n"),
    "x-robots-tag": ("", answer(X_Robots_Tag="noai, noimageai"), "train-ai=n train-ai-images=n"),
    "meta-robots": ("", answer(f'<meta name="robots" content="NoAI">{TEXT}'), "train-ai=n"),
}


@pytest.mark.parametrize("source", SOURCES)
@pytest.mark.parametrize("purpose", [None, *Purpose])
async def test_a_page_that_may_not_be_used_for_training(world: World, source: str, purpose: Purpose | None) -> None:
    text, fetched, expected = SOURCES[source]
    await world.open(f"{A}/", script={ROBOTS: robots(text), f"{A}/": fetched})
    world.purpose = purpose
    record = await world.visit()
    row = record.requests[-1]
    assert (" ".join(row.usage), row.usage_from) == (expected, (source,))
    states = await world.rows("SELECT state, reason FROM url")
    if purpose is Purpose.TRAINING:
        assert not world.pages and states == [(2, "usage preference")]
        assert (row.title, row.content_hash, row.purpose) == ("", None, "")
    else:
        assert len(world.pages) == 1 and states == [(1, "")]
        assert row.purpose == ("" if purpose is None else purpose)


@pytest.mark.parametrize(
    ("text", "fetched", "expected", "sources"),
    [
        ("", answer(), "", ()),
        ("", answer(Content_Usage="train-ai=y", TDM_Policy="https://a.test/p"),
         "tdm-policy=https://a.test/p train-ai=y", ("content-usage", "tdm-header")),
        ("License: https://a.test/l", answer(), "license=https://a.test/l", ("robots-license",)),
        ("User-agent: *\nContent-Signal: ai-input=no, search=no", answer(), "ai-input=n search=n",
         ("robots-content-signal",)),
        ("", answer(f'<meta name=robots content=noimageai>{TEXT}'), "train-ai-images=n", ("meta-robots",)),
        ("User-agent: *\nContent-Usage: /other train-ai=n", answer(), "", ()),
        ("", answer(X_Robots_Tag="otherbot: noai"), "", ()),
    ],
)  # fmt: skip
async def test_a_page_that_is_kept_for_training(
    world: World, text: str, fetched: Fetched, expected: str, sources: tuple[str, ...]
) -> None:
    await world.open(f"{A}/", script={ROBOTS: robots(text), f"{A}/": fetched})
    world.purpose = Purpose.TRAINING
    row = (await world.visit()).requests[-1]
    assert (" ".join(row.usage), row.usage_from, row.purpose) == (expected, sources, "training")
    assert len(world.pages) == 1


async def test_of_contradicting_sources_the_one_that_says_no_wins(world: World) -> None:
    text = "User-agent: *\nContent-Usage: train-ai=y\nContent-Signal: ai-train=yes"
    fetched = answer(f'<meta name="tdm-reservation" content="1"><a href=/next>x</a>{TEXT}', Content_Usage="train-ai=y")
    await world.open(f"{A}/", script={ROBOTS: robots(text), f"{A}/": fetched})
    world.purpose = Purpose.TRAINING
    row = (await world.visit()).requests[-1]
    assert row.usage == ("train-ai=n",) and not world.pages
    assert row.usage_from == ("content-usage", "robots-content-signal", "robots-content-usage", "tdm-meta")
    assert await world.rows("SELECT url FROM url WHERE state = 0") == [(f"{A}/next",)], "its links are followed"


async def test_a_long_robots_txt_keeps_its_lines_about_use(world: World) -> None:
    text = "User-agent: *\nContent-Usage: / train-ai=n\n" + "Disallow: /x\n# comment\n" * 2_000
    await world.open(f"{A}/", script={ROBOTS: robots(text), f"{A}/": answer()})
    world.purpose = Purpose.TRAINING
    assert (await world.visit()).requests[-1].usage == ("train-ai=n",) and not world.pages
