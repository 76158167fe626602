"""The documents: links lead somewhere, the README stays short, and commands that it names exist."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
DOCUMENTS = [
    ROOT / "README.md",
    ROOT / "CONTRIBUTING.md",
    ROOT / "CHANGELOG.md",
    *sorted((ROOT / "docs").glob("*.md")),
]
_LINK = re.compile(r"\]\(([^)#\s]+)(?:#[^)]*)?\)")
_MAKE = re.compile(r"\bmake ([a-z][a-z-]*)")
MAX_README_LINES = 110


def links_of(document: Path) -> list[str]:
    """Return the relative targets of a document's links and pictures."""
    targets = _LINK.findall(document.read_text("utf-8"))
    return [target for target in targets if "://" not in target]


@pytest.mark.parametrize("document", DOCUMENTS, ids=lambda path: path.name)
def test_relative_links_lead_to_files(document: Path) -> None:
    missing = [link for link in links_of(document) if not (document.parent / link).exists()]
    assert not missing, f"{document.name} links to {missing}"


def test_the_readme_leads_to_every_document() -> None:
    linked = {(ROOT / link).resolve() for link in links_of(ROOT / "README.md")}
    assert set((ROOT / "docs").glob("*.md")) <= linked


def test_the_readme_stays_short() -> None:
    assert len((ROOT / "README.md").read_text("utf-8").splitlines()) <= MAX_README_LINES


@pytest.mark.parametrize("document", DOCUMENTS, ids=lambda path: path.name)
def test_make_targets_exist(document: Path) -> None:
    targets = set(re.findall(r"^([a-z][a-z-]*):", (ROOT / "Makefile").read_text("utf-8"), re.MULTILINE))
    text = document.read_text("utf-8")
    quoted = "\n".join(re.findall(r"`[^`\n]+`|^ {4}.*$", text, re.MULTILINE))
    assert set(_MAKE.findall(quoted)) <= targets
