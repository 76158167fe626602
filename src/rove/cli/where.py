"""The option `--where` of the commands that list pages."""

from __future__ import annotations

from rove.cli.options import option
from rove.cli.types import Parsed
from rove.inspect.page_query import parse_where

where_option = option(
    "--where",
    type=Parsed("expression", parse_where),
    metavar="EXPR",
    help="Only pages for which this expression holds (docs/rules.md).",
)
