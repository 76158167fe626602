"""The HTML page and its files, which are part of the package."""

from __future__ import annotations

from functools import cache
from importlib import resources

from jinja2 import Environment, PackageLoader, StrictUndefined
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import HTMLResponse, Response

from rove import __version__

FOLDER = "page"
_TYPES = {".css": "text/css", ".js": "text/javascript", ".svg": "image/svg+xml"}
_ENVIRONMENT = Environment(
    loader=PackageLoader("rove.observe.dashboard", FOLDER), autoescape=True, undefined=StrictUndefined
)


@cache
def _files() -> dict[str, bytes]:
    """Return the files of the page by name, so that no request names a path."""
    folder = resources.files("rove.observe.dashboard").joinpath(FOLDER)
    return {file.name: file.read_bytes() for file in folder.iterdir() if file.name.endswith(tuple(_TYPES))}


def html_page(name: str, *, reading_needs_token: bool) -> HTMLResponse:
    """Return the page of a crawl with this name. It holds nothing else of the crawl."""
    template = _ENVIRONMENT.get_template("page.html")
    return HTMLResponse(template.render(name=name, version=__version__, needs_token=reading_needs_token))


async def static_file(request: Request) -> Response:
    """Return a file of the page."""
    name = request.path_params["name"]
    body = _files().get(name)
    if body is None:
        raise HTTPException(404, "there is no such file")
    return Response(body, media_type=_TYPES[name[name.rindex(".") :]], headers={"cache-control": "no-cache"})
