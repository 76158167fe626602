"""Machines, grouped from their processes."""

from __future__ import annotations

import json
from typing import Any

import pytest

from rove.frontier.runs import Participant
from rove.inspect.nodes import NodeStatus, as_json, as_line, is_alive, nodes_of, runs_elsewhere


def process(number: int = 1, **changes: Any) -> Participant:
    values: dict[str, Any] = {
        "node": "one:/data",
        "is_here": False,
        "process": number,
        "pid": 1000 + number,
        "has_left": False,
        "is_paused": False,
        "pages": 10,
        "pages_per_second": 2.5,
        "in_flight": 4,
        "at_once": 8,
        "held_by": "demand",
        "since": 100.0,
        "silent_for": 1.0,
    }
    return Participant(**{**values, **changes})


def node_of(*processes: Participant) -> NodeStatus:
    (node,) = nodes_of(processes)
    return node


@pytest.mark.parametrize(
    ("has_left", "silent_for", "expected"),
    [(False, 0.0, True), (False, 14.9, True), (False, 15.0, False), (True, 0.0, False), (True, 1e6, False)],
)
def test_a_process_is_alive_while_it_reports(has_left: bool, silent_for: float, expected: bool) -> None:
    assert is_alive(process(has_left=has_left, silent_for=silent_for)) is expected


def test_only_a_running_process_on_another_machine_runs_elsewhere() -> None:
    assert runs_elsewhere([process(is_here=True), process()])
    assert not runs_elsewhere([process(is_here=True), process(has_left=True)])
    assert not runs_elsewhere([process(silent_for=15.0)])


def test_without_processes_there_are_no_machines() -> None:
    assert nodes_of([]) == []


def test_machines_come_in_the_order_in_which_they_joined() -> None:
    names = ["b:/x", "a:/x", "b:/x", "c:/x", "a:/x"]
    nodes = nodes_of([process(i, node=name) for i, name in enumerate(names)])
    assert [node.name for node in nodes] == ["b:/x", "a:/x", "c:/x"]
    assert [[p.process for p in node.processes] for node in nodes] == [[0, 2], [1, 4], [3]]


def test_the_rates_of_running_processes_add_up() -> None:
    node = node_of(
        process(1, pages_per_second=2.5, in_flight=4, since=50.0, silent_for=3.0),
        process(2, pages_per_second=1.5, in_flight=6, since=80.0, silent_for=2.0),
    )
    assert node.state == "running"
    assert node.pages_per_second == pytest.approx(4.0)
    assert node.in_flight == 10
    assert node.since == 80.0, "the oldest process"
    assert node.silent_for == 2.0, "the latest report"


def test_the_pages_of_dead_processes_count_and_their_rates_do_not() -> None:
    node = node_of(
        process(1, pages=100, in_flight=50, pages_per_second=9.0, since=999.0, silent_for=500.0),
        process(2, pages=30, in_flight=7, pages_per_second=3.0, since=888.0, has_left=True),
        process(3, pages=5, in_flight=2, pages_per_second=1.0, since=20.0),
    )
    assert [p.process for p in node.processes] == [3]
    assert (node.pages, node.in_flight, node.pages_per_second) == (135, 2, 1.0)
    assert node.since == 20.0, "those that are gone do not make it older"


def test_a_machine_that_shut_down_cleanly_has_left() -> None:
    node = node_of(process(1, silent_for=500.0, since=900.0), process(2, silent_for=40.0, since=300.0, has_left=True))
    assert (node.state, node.processes) == ("left", [])
    assert node.since == 300.0, "its last start"
    assert node.silent_for == 40.0


def test_it_has_left_at_once() -> None:
    assert node_of(process(1, silent_for=0.5, has_left=True)).state == "left"


def test_a_machine_that_fell_silent_has_disappeared() -> None:
    """Even if it had shut down cleanly before."""
    node = node_of(process(1, silent_for=500.0, has_left=True), process(2, silent_for=16.0))
    assert (node.state, node.processes, node.in_flight) == ("disappeared", [], 0)


def test_one_process_that_reports_keeps_it_running() -> None:
    node = node_of(process(1, silent_for=0.5, has_left=True), process(2, silent_for=5.0))
    assert node.state == "running"


def test_here_is_where_the_latest_says_it_is() -> None:
    assert node_of(process(1), process(2, is_here=True, silent_for=0.5)).is_here
    assert not node_of(process(1)).is_here


def test_the_object_for_programs() -> None:
    node = node_of(
        process(7, pages_per_second=1.234, since=10.98765, silent_for=0.12345, is_here=True),
        process(8, pages_per_second=1.0, since=5.0, silent_for=2.0, is_here=True),
        process(9, silent_for=99.0),
    )
    record = json.loads(json.dumps(as_json(node)))
    processes = record.pop("processes")
    assert record == {
        "place": "one:/data",
        "here": True,
        "state": "running",
        "paused": False,
        "since_s": 10.988,
        "silent_for_s": 0.123,
        "pages": 30,
        "pages_per_s": 2.23,
        "in_flight": 8,
    }
    assert [entry["process"] for entry in processes] == [7, 8], "the running ones"
    assert processes[0] == {
        "process": 7,
        "pid": 1007,
        "since_s": 10.988,
        "silent_for_s": 0.123,
        "pages": 10,
        "pages_per_s": 1.23,
        "in_flight": 4,
    }


def test_the_line_for_people() -> None:
    running = node_of(
        process(1, pages=12_345, in_flight=1500, since=3700.0, silent_for=2.4), process(2, pages=0, in_flight=0)
    )
    line = as_line(running)
    assert line.startswith("one:/data: 2 processes, up for 1 h 01 min, last seen 1 s ago")
    assert line.endswith("5.0 pages/s, 1,500 in flight, 12,345 pages")


def test_the_line_of_a_machine_that_is_gone() -> None:
    gone = process(1, pages=1234, silent_for=125.0, is_here=True)
    assert as_line(node_of(gone)) == "one:/data (here): disappeared 2 min 05 s ago, 1,234 pages"
    left = process(1, pages=0, silent_for=3.0, has_left=True)
    assert as_line(node_of(left)) == "one:/data: left 3.0 s ago, 0 pages"


def test_a_machine_is_paused_when_all_its_processes_are() -> None:
    assert not node_of(process(1, is_paused=True), process(2)).is_paused
    node = node_of(process(1, is_paused=True), process(2, is_paused=True), process(3, has_left=True))
    assert node.is_paused and "2 processes, paused, up for" in as_line(node)
    assert as_json(node)["paused"] and as_json(node)["state"] == "running"
    assert not node_of(process(is_paused=True, has_left=True)).is_paused
