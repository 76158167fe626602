"""Packs the figures and histograms of a sample into a kilobyte.

The packed form is JSON, compressed by zlib with a dictionary of common names, because names make up most of it.
Counts are kept in full, gauges with four digits. Of a histogram the buckets are kept in full, the total with four
digits and the largest value with three.
"""

from __future__ import annotations

import zlib
from importlib import resources

import msgspec

from rove.model.figures import Unit, figure_of
from rove.model.samples import SHORTEST_SECONDS, SMALLEST_BYTES, Distribution, Sample

_NAMES = resources.files("rove.frontier.rows").joinpath("sample_names.txt").read_bytes()
"""The dictionary. A packed sample can be read only with the very same one."""
_MICROSECONDS = 1_000_000

Figures = dict[str, float]
Histograms = dict[str, Distribution]


class _Packed(msgspec.Struct, array_like=True):
    figures: Figures
    histograms: dict[str, list[int]]
    """Total, largest value, the index of the first bucket that is used, and the numbers from there on."""


_decode = msgspec.json.Decoder(_Packed).decode


def pack(sample: Sample) -> bytes:
    """Return the figures and histograms of a sample in the packed form."""
    content = _Packed(
        figures={name: _short(name, value) for name, value in sample.figures.items()},
        histograms={name: _numbers(name, values) for name, values in sample.histograms.items() if values.count},
    )
    compressor = zlib.compressobj(zdict=_NAMES)
    return compressor.compress(msgspec.json.encode(content)) + compressor.flush()


def unpack(packed: bytes) -> tuple[Figures, Histograms]:
    """Return the figures and histograms of a sample."""
    content = _decode(zlib.decompressobj(zdict=_NAMES).decompress(packed))
    return content.figures, {name: _distribution(name, numbers) for name, numbers in content.histograms.items()}


def _short(name: str, value: float) -> float:
    """Return a value in as few characters as it needs."""
    is_whole = value == int(value)
    if not (is_whole and figure_of(name).is_count):
        value = _rounded(value, 4)
    return int(value) if is_whole else value


def _rounded(value: float, digits: int) -> float:
    return float(f"{value:.{digits - 1}e}")


def _numbers(name: str, values: Distribution) -> list[int]:
    scale = _scale(name)
    first, last = min(values.buckets), max(values.buckets)
    total, longest = _rounded(values.total * scale, 4), _rounded(values.longest * scale, 3)
    return [round(total), round(longest), first, *(values.buckets.get(bucket, 0) for bucket in range(first, last + 1))]


def _distribution(name: str, numbers: list[int]) -> Distribution:
    scale = _scale(name)
    total, longest, first, *buckets = numbers
    return Distribution(
        count=sum(buckets),
        total=total / scale,
        longest=longest / scale,
        buckets={bucket: number for bucket, number in enumerate(buckets, first) if number},
        first=SHORTEST_SECONDS if scale == _MICROSECONDS else SMALLEST_BYTES,
    )


def _scale(name: str) -> int:
    """Return how many of the units that are stored make up a unit of the figure."""
    return 1 if figure_of(name).unit is Unit.BYTES else _MICROSECONDS
