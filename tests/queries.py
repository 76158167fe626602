"""The queries of the Grafana dashboard and of the alert rules, and the metrics and labels that they name."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from prometheus_client.core import Metric

CONTRIB = Path(__file__).parents[1] / "contrib"
DASHBOARD = CONTRIB / "grafana" / "rove.json"
RULES = CONTRIB / "prometheus" / "rove.rules.yml"

ADDED_BY_PROMETHEUS = frozenset({"instance", "job"})
_METRIC = re.compile(r"\b(rove_\w+)(?:\{([^}]*)\})?")
_MATCHER = re.compile(r'(\w+)\s*(=~|!~|!=|=)\s*"([^"]*)"')
_GROUPING = re.compile(r"\b(?:by|on|without|ignoring)\s*\(([^)]*)\)")
_LEGEND = re.compile(r"\{\{(\w+)\}\}")
_EXPRESSION = re.compile(r"^ +expr: (?:\|\n((?: {10,}.*\n)+)|(.+)\n)", re.MULTILINE)
_VARIABLES = {"$__rate_interval": "1m", "$instance": ".*"}


@dataclass(frozen=True)
class Query:
    """A query in PromQL, and the labels that its legend shows."""

    text: str
    legend: str = ""

    @property
    def without_variables(self) -> str:
        """The query as Prometheus gets it."""
        text = self.text
        for name, value in _VARIABLES.items():
            text = text.replace(name, value)
        return text


def dashboard_queries() -> list[Query]:
    """Return the queries of all panels."""
    board = json.loads(DASHBOARD.read_text("utf-8"))
    return [Query(target["expr"], target["legendFormat"]) for panel in panels(board) for target in panel["targets"]]


def panels(board: Mapping[str, Any]) -> Iterator[dict[str, Any]]:
    """Iterate over the panels that show something."""
    return (panel for panel in board["panels"] if panel["type"] != "row")


def alert_queries() -> list[Query]:
    """Return the queries of all alert rules."""
    return [Query(several or one) for several, one in _EXPRESSION.findall(RULES.read_text("utf-8"))]


def unresolved(queries: Iterable[Query], families: Iterable[Metric]) -> list[str]:
    """Return what the queries name and the metrics do not have: series, labels, and values of labels."""
    series: dict[str, dict[str, set[str]]] = {}
    for family in families:
        for sample in family.samples:
            values = series.setdefault(sample.name, {})
            for label, value in sample.labels.items():
                values.setdefault(label, set()).add(value)
    return [problem for query in queries for problem in _problems(query, series)]


def _problems(query: Query, series: Mapping[str, Mapping[str, set[str]]]) -> Iterator[str]:
    named: set[str] = set(ADDED_BY_PROMETHEUS)
    for name, matchers in _METRIC.findall(query.text):
        if name not in series:
            yield f"{name} in {query.text}"
            continue
        named.update(series[name])
        for label, comparison, value in _MATCHER.findall(matchers):
            if label in ADDED_BY_PROMETHEUS:
                continue
            if label not in series[name]:
                yield f"label {label} of {name} in {query.text}"
            elif comparison in ("=", "!=") and value not in series[name][label]:
                yield f"value {value} of {label} of {name} in {query.text}"
    grouped = [label.strip() for labels in _GROUPING.findall(query.text) for label in labels.split(",")]
    for label in {*grouped, *_LEGEND.findall(query.legend)} - named:
        yield f"label {label} in {query.text} {query.legend}"
