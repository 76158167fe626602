"""URLs as the tests write them: in the form of a crawl with a fixed secret."""

from __future__ import annotations

from rove.urls.canonical import FormKey, UrlForm

KEY = FormKey(secret=b"secret of a test")
FORM = UrlForm(KEY)
canonical = FORM.in_full.canonical
"""Returns the canonical form of a URL with all its parameters."""


def form_dropping(*names: str) -> UrlForm:
    """Return the form of a crawl with the same secret that ignores these parameters too."""
    return UrlForm(FormKey(secret=KEY.secret, drop_params=names))
