"""Turns a chart into a picture. The library that does it, resvg, comes with the extra `plot` and has its home here."""

from __future__ import annotations

from rove.errors import UsageError

ZOOM = 2.0
"""Pixels per unit of the chart, so that the picture is sharp on a good screen and on paper."""
_PROBE = '<svg xmlns="http://www.w3.org/2000/svg" width="9" height="9">{}</svg>'


def as_png(svg: str, *, has_system_fonts: bool = True) -> bytes:
    """Return the chart as a PNG, in its light colours."""
    try:
        from resvg_py import svg_to_bytes
    except ImportError:
        raise UsageError(
            "PNG needs a library that is not installed; run 'pip install \"rove[plot]\"', "
            "or write an .svg or .html file, which any browser shows"
        ) from None

    def draw(text: str, zoom: float) -> bytes:
        return svg_to_bytes(svg_string=text, zoom=zoom, skip_system_fonts=not has_system_fonts)

    if draw(_PROBE.format('<text y="9">M</text>'), 1.0) == draw(_PROBE.format(""), 1.0):
        raise UsageError(
            "PNG needs a font, and this machine has none; install one, such as the package fonts-dejavu-core, "
            "or write an .svg or .html file"
        )
    return draw(svg, ZOOM)
