"""Which format a client gets."""

from __future__ import annotations

import pytest

from rove.observe.metrics.formats import Format, format_for

OPENMETRICS = "application/openmetrics-text"
PROMETHEUS_2 = (
    f"{OPENMETRICS};version=1.0.0,{OPENMETRICS};version=0.0.1;q=0.75,text/plain;version=0.0.4;q=0.5,*/*;q=0.1"
)
PROMETHEUS_3 = (
    f"{OPENMETRICS};version=1.0.0;escaping=allow-utf-8;q=0.6,{OPENMETRICS};version=0.0.1;q=0.5,"
    "text/plain;version=1.0.0;escaping=allow-utf-8;q=0.4,text/plain;version=0.0.4;q=0.3,*/*;q=0.2"
)


@pytest.mark.parametrize("accept", [OPENMETRICS, PROMETHEUS_2, PROMETHEUS_3, f'{OPENMETRICS}; version="1.0.0"'])
def test_prometheus_gets_openmetrics(accept: str) -> None:
    assert format_for(accept) is Format.OPENMETRICS


@pytest.mark.parametrize(
    "accept",
    [
        "",
        "*/*",
        "text/html,application/xhtml+xml,*/*;q=0.8",
        "text/plain",
        f"{OPENMETRICS};q=0.3, text/plain;q=0.4",
        f"{OPENMETRICS};version=0.0.1",
        f"{OPENMETRICS};version=99.0",
        f"{OPENMETRICS};q=much",
        f"{OPENMETRICS};q=nan",
        f"{OPENMETRICS};q=0",
        ";;;,,,===",
        1000 * "a/b," + OPENMETRICS,
    ],
)
def test_everybody_else_gets_the_older_format(accept: str) -> None:
    assert format_for(accept) is Format.PROMETHEUS
