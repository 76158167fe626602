"""The Grafana dashboard and the alert rules. tests/acceptance/test_metrics.py compares them with a real crawl."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest

from rove.observe.metrics.collector import ReadingCollector
from rove.observe.metrics.formats import Format
from tests.promtool import promtool
from tests.queries import DASHBOARD, RULES, Query, alert_queries, dashboard_queries, panels, unresolved
from tests.unit.observe.metrics.test_metrics import collected, families, sample

ROWS = ["Is it polite?", "Is it healthy?", "What limits it?", "What does the web answer?"]
WIDTH = 24


def test_a_query_that_names_nothing_real_is_found() -> None:
    seen = families(collected(sample({"errors.page.dns": 1.0, "requests.page": 1.0})))
    good = Query('sum by (kind, instance) (rate(rove_request_errors_total{error="dns", job=~".*"}[5m]))', "{{kind}}")
    assert unresolved([good], seen) == []
    for bad in (
        Query("rove_pages"),
        Query("rove_claims_bucket"),
        Query('rove_claims_total{outcome="found"}'),
        Query('rove_claims_total{result="none"}'),
        Query("sum by (kind) (rove_claims_total)"),
        Query("rove_claims_total", "{{kind}}"),
    ):
        assert len(unresolved([bad], seen)) == 1, bad


def test_the_dashboard_can_be_provisioned() -> None:
    board = json.loads(DASHBOARD.read_text("utf-8"))
    assert [panel["title"] for panel in board["panels"] if panel["type"] == "row"] == ROWS
    assert [variable["name"] for variable in board["templating"]["list"]] == ["datasource", "instance"]
    sources = set(re.findall(r'"uid": "([^"]*)"', DASHBOARD.read_text("utf-8"))) - {board["uid"]}
    assert sources == {"${datasource}"}
    ids = [panel["id"] for panel in board["panels"]]
    assert len(ids) == len(set(ids))


def test_no_panel_covers_another() -> None:
    board = json.loads(DASHBOARD.read_text("utf-8"))
    covered: dict[tuple[int, int], str] = {}
    for panel in board["panels"]:
        place = panel["gridPos"]
        assert place["x"] + place["w"] <= WIDTH, panel["title"]
        for x in range(place["x"], place["x"] + place["w"]):
            for y in range(place["y"], place["y"] + place["h"]):
                assert (x, y) not in covered, f"{panel['title']} covers {covered[x, y]}"
                covered[x, y] = panel["title"]


def test_every_panel_says_what_it_shows() -> None:
    for panel in panels(json.loads(DASHBOARD.read_text("utf-8"))):
        assert panel["title"] and panel["fieldConfig"]["defaults"]["unit"], panel["title"]
        legends = [target["legendFormat"] for target in panel["targets"]]
        assert len(set(legends)) == len(legends), panel["title"]


def test_all_alert_rules_are_read() -> None:
    assert len(alert_queries()) == RULES.read_text("utf-8").count("- alert:") >= 4


@pytest.mark.system
def test_promtool_accepts_the_metrics() -> None:
    seen = collected(sample({"pages.stored": 1.0, "errors.page.dns": 1.0, "in_flight": 1.0, "cpu.1": 1.0}))
    promtool("check", "metrics", input=Format.PROMETHEUS.encoded(ReadingCollector(seen.reading())))


@pytest.mark.system
def test_promtool_understands_every_query(tmp_path: Path) -> None:
    rules = [
        f"      - record: query{number}\n        expr: {json.dumps(query.without_variables)}\n"
        for number, query in enumerate(dashboard_queries())
    ]
    file = tmp_path / "queries.yml"
    file.write_text("groups:\n  - name: dashboard\n    rules:\n" + "".join(rules))
    promtool("check", "rules", RULES, file)


ALERTS = """
rule_files: [{rules}]
evaluation_interval: 1m
tests:
  - interval: 1m
    input_series:
      - {{series: 'rove_pages_total{{instance="busy", outcome="stored"}}', values: '0+60x30'}}
      - {{series: 'rove_pages_total{{instance="stuck", outcome="stored"}}', values: '0+60x10 600x30'}}
      - {{series: 'rove_pages_total{{instance="paused", outcome="stored"}}', values: '0+60x10 600x30'}}
      - {{series: 'rove_paused{{instance="paused", cause="operator"}}', values: '1x40'}}
      - {{series: 'rove_politeness_smallest_margin_seconds{{instance="busy"}}', values: '0.2x40'}}
      - {{series: 'rove_politeness_smallest_margin_seconds{{instance="stuck"}}', values: '0.2x18 -0.1x2 0.2x20'}}
      - {{series: 'rove_paused{{instance="stuck", cause="disk"}}', values: '0x18 1x22'}}
      - {{series: 'rove_database_up{{instance="stuck"}}', values: '1x17 0x23'}}
      - {{series: 'rove_database_up{{instance="busy"}}', values: '1x40'}}
    alert_rule_test:
      - {{eval_time: 14m, alertname: RoveStoresNoPages, exp_alerts: []}}
      - eval_time: 21m
        alertname: RoveStoresNoPages
        exp_alerts:
          - exp_labels: {{instance: stuck, severity: warning}}
            exp_annotations:
              summary: stuck has stored no page for 10 minutes
              description: "`rove status` says what limits the crawl, and docs/observe.md where to look next."
      - {{eval_time: 18m, alertname: RoveIsImpolite, exp_alerts: []}}
      - eval_time: 19m
        alertname: RoveIsImpolite
        exp_alerts:
          - exp_labels: {{instance: stuck, severity: critical}}
            exp_annotations:
              summary: stuck visited a domain 100ms too early
              description: >-
                This is a bug or a clock that jumped. Stop the crawl with `rove stop`; `rove audit` lists the visits.
      - {{eval_time: 18m, alertname: RoveDiskIsFull, exp_alerts: []}}
      - eval_time: 20m
        alertname: RoveDiskIsFull
        exp_alerts:
          - exp_labels: {{instance: stuck, severity: critical}}
            exp_annotations:
              summary: stuck is paused because its disk is nearly full
              description: The crawl continues by itself as soon as there is room. See `--min-free-disk`.
      - {{eval_time: 17m, alertname: RoveDatabaseIsAway, exp_alerts: []}}
      - eval_time: 19m
        alertname: RoveDatabaseIsAway
        exp_alerts:
          - exp_labels: {{instance: stuck, severity: critical}}
            exp_annotations:
              summary: stuck cannot reach the database of its crawl
              description: >-
                The crawl waits for it and continues by itself. The log of the crawl says what the database answers.
"""


@pytest.mark.system
def test_each_alert_fires_when_it_should(tmp_path: Path) -> None:
    file = tmp_path / "alerts.yml"
    file.write_text(ALERTS.format(rules=json.dumps(str(RULES))))
    promtool("test", "rules", file)
