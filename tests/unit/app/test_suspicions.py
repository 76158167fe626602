"""What is said about URLs that were being read when a process died."""

from __future__ import annotations

import logging

import pytest

from rove.app.suspicions import MAX_SHOWN, suspicion_text, tell_suspicions
from rove.frontier.records import Suspicion


def suspicion(number: int = 0, deaths: int = 0, has_failed: bool = False) -> Suspicion:
    return Suspicion(url=f"http://a.test/{number}", deaths=deaths, has_failed=has_failed)


def test_each_stage_has_its_sentence() -> None:
    texts = [suspicion_text(suspicion(deaths=deaths, has_failed=deaths == 2)) for deaths in range(3)]
    assert texts == [
        "a process died while it read http://a.test/0; rove tries that URL again in a process of its own",
        "a process that read nothing but http://a.test/0 died; rove tries that URL once more",
        "gave up http://a.test/0: it killed 2 processes that had nothing else to read",
    ]


def test_few_are_shown_and_all_are_logged(caplog: pytest.LogCaptureFixture) -> None:
    said: list[str] = []
    with caplog.at_level(logging.WARNING):
        tell_suspicions([suspicion(number) for number in range(MAX_SHOWN + 3)], said.append)
    assert len(said) == MAX_SHOWN + 1
    assert said[-1] == "3 more URLs were being read when a process died; rove.log names them"
    assert len(caplog.messages) == MAX_SHOWN + 3
    assert caplog.messages[7] == "suspect url=http://a.test/7 deaths_alone=0 failed=False"


def test_nothing_is_said_without_a_suspect() -> None:
    said: list[str] = []
    tell_suspicions([], said.append)
    assert said == []
