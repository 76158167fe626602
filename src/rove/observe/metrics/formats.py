"""The two text formats of metrics, and which of them a client gets."""

from __future__ import annotations

import enum
from collections.abc import Iterator

from prometheus_client import exposition
from prometheus_client.openmetrics import exposition as openmetrics
from prometheus_client.registry import Collector

MAX_RANGES = 32
"""Media ranges of an Accept header that are read."""


class Format(enum.Enum):
    """A text format for metrics."""

    PROMETHEUS = "text/plain; version=0.0.4; charset=utf-8"
    OPENMETRICS = "application/openmetrics-text; version=1.0.0; charset=utf-8"

    @property
    def media_type(self) -> str:
        """The Content-Type."""
        return self.value

    def encoded(self, collector: Collector) -> bytes:
        """Return the metrics of a collector in this format."""
        if self is Format.OPENMETRICS:
            text: bytes = openmetrics.generate_latest(collector)  # type: ignore[no-untyped-call]
            return text
        return exposition.generate_latest(collector)


_VERSIONS = {
    ("application/openmetrics-text", ""): Format.OPENMETRICS,
    ("application/openmetrics-text", "1.0.0"): Format.OPENMETRICS,
    ("text/plain", ""): Format.PROMETHEUS,
    ("text/plain", "0.0.4"): Format.PROMETHEUS,
    ("text/*", ""): Format.PROMETHEUS,
    ("*/*", ""): Format.PROMETHEUS,
}
"""The formats by media range and version. The library's own choice takes the first range and ignores weights."""


def format_for(accept: str) -> Format:
    """Return the format that an Accept header prefers; the older one if it names none of the two.

    >>> format_for("application/openmetrics-text;version=1.0.0;q=0.6,text/plain;version=0.0.4;q=0.3")
    <Format.OPENMETRICS: 'application/openmetrics-text; version=1.0.0; charset=utf-8'>
    """
    weights = {Format.PROMETHEUS: 0.0, Format.OPENMETRICS: 0.0}
    for media_range, version, weight in _ranges(accept):
        wanted = _VERSIONS.get((media_range, version))
        if wanted is not None:
            weights[wanted] = max(weights[wanted], weight)
    return max(Format, key=weights.__getitem__)


def _ranges(accept: str) -> Iterator[tuple[str, str, float]]:
    for text in accept.split(",")[:MAX_RANGES]:
        media_range, *parameters = (part.strip().lower() for part in text.split(";"))
        values = dict(parameter.partition("=")[::2] for parameter in parameters)
        try:
            weight = float(values.get("q", "1"))
        except ValueError:
            continue
        yield media_range, values.get("version", "").strip('"'), weight
