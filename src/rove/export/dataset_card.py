"""The card of a Hugging Face data set: what the pages are, when and how they were collected."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass, field

from rove import __version__
from rove.config import Settings
from rove.export.documents import Document
from rove.notation.humanize import counted, precise

DATA_FOLDER = "data"
_SIZES = ((1_000, "n<1K"), (10_000, "1K<n<10K"), (100_000, "10K<n<100K"), (1_000_000, "100K<n<1M"))
_LARGER = ((10_000_000, "1M<n<10M"), (100_000_000, "10M<n<100M"), (1_000_000_000, "100M<n<1B"))


@dataclass(slots=True)
class Tally:
    """What a card says about the documents, counted while they are written."""

    pages: int = 0
    characters: int = 0
    copies: int = 0
    """Pages whose text is that of another page in the crawl."""
    first: str = ""
    last: str = ""
    statuses: Counter[int] = field(default_factory=Counter)
    languages: Counter[str] = field(default_factory=Counter)
    usage: Counter[str] = field(default_factory=Counter)
    """What sites state about the use of their pages."""

    def add(self, document: Document) -> None:
        """Count a document."""
        self.pages += 1
        self.characters += len(document.text or "")
        self.copies += document.stored.row.is_copy
        self.first = min(self.first or document.date, document.date)
        self.last = max(self.last, document.date)
        self.statuses[document.stored.row.status] += 1
        self.languages[document.language or "unknown"] += 1
        self.usage[document.usage or "nothing stated"] += 1


def dataset_card(name: str, tally: Tally, settings: Iterable[Settings], *, exclusions: int) -> str:
    """Return the README.md of a data set."""
    delays = sorted({setting.delay for setting in settings})
    delay = " and ".join(precise(delay) for delay in delays)
    excluded = _exclusions_text(exclusions)
    size = next((word for limit, word in (*_SIZES, *_LARGER) if tally.pages < limit), "n>1B")
    title = json.dumps(name, ensure_ascii=False)
    return f"""\
---
pretty_name: {title}
task_categories:
- text-generation
size_categories:
- {size}
configs:
- config_name: default
  data_files:
  - split: train
    path: {DATA_FOLDER}/*.parquet
---

# {name}

This data set has {counted(tally.pages, "web page")} with {tally.characters:,} characters of text.
rove {__version__} requested them between {tally.first or "-"} and {tally.last or "-"}.
Of these pages, {tally.copies:,} repeat a text that is stored as another page's.

## How the pages were collected

- rove read the robots.txt of each site before its first page, and requested only what it allows (RFC 9309).
- It left at least {delay} between two visits to one registrable domain, and longer where a site asked for it.
- Pages that ask not to be indexed (`noindex`) are not in the data.
- {excluded}

## Columns

| column | meaning |
|---|---|
| `text` | the visible text of the whole page, menus included |
| `id` | a name that no other page has |
| `dump` | the crawl |
| `url`, `title`, `domain` | the page and its registrable domain |
| `date` | when it was requested, UTC |
| `file_path` | the WARC file that holds the text |
| `language`, `language_score` | the commonest language of the text (ISO 639-3), and its share |
| `token_count` | empty: not determined |
| `status` | the HTTP status |
| `copies` | how many other pages of the crawl have the same text |
| `depth` | links between a seed and the page |
| `usage` | what the site states about the use of the page; empty where it states nothing |
| `simhash` | 64 bits that are similar for similar texts |

## Languages

{_table("language", tally.languages)}

## Usage preferences

{_table("usage", tally.usage)}

## Rights

The texts belong to their authors. You need their permission, or a law that allows your use.
"""


def _table(name: str, counts: Counter[str]) -> str:
    rows = [f"| {one} | {count:,} |" for one, count in sorted(counts.items(), key=lambda item: (-item[1], item[0]))]
    return "\n".join([f"| {name} | pages |", "|---|---|", *rows])


def _exclusions_text(exclusions: int) -> str:
    if not exclusions:
        return "No site was excluded from the crawl when the data was written."
    return f"{counted(exclusions, 'exclusion')} of sites applied when the data was written; their pages are left out."
