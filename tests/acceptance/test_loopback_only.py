"""The demo and a crawl of the small web send nothing beyond loopback and query no name server.

Both run in a network namespace of their own that has nothing but loopback: what would leave has no route, and the
kernel counts it. So does it count every datagram, such as a question to a name server that is on loopback itself.
This file is also the program that runs inside of the namespace.
"""

from __future__ import annotations

import fcntl
import json
import os
import shutil
import socket
import struct
import subprocess
import sys
import tempfile
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest

from tests.acceptance.command import EMAIL, crawl_options, rove_each, started, wait_for
from tests.acceptance.results import exported_urls, frontier_rows
from tests.acceptance.small_web import served

ROOT = Path(__file__).parents[2]
NAMESPACES = (["unshare", "--user", "--map-root-user", "--net"], ["unshare", "--net"])
NOT_PERMITTED = (
    "this test needs a network namespace: run it as root, or where users may make namespaces "
    "(sysctl kernel.unprivileged_userns_clone, user.max_user_namespaces), with `unshare` installed"
)
SIOCGIFFLAGS, SIOCSIFFLAGS, IFF_UP = 0x8913, 0x8914, 1


def in_namespace(scenario: str) -> dict[str, Any]:
    """Run a scenario of this file in a namespace with nothing but loopback, and return its report."""
    if shutil.which("unshare") is None:
        pytest.fail(NOT_PERMITTED)
    for namespace in NAMESPACES:
        if subprocess.run([*namespace, "true"], capture_output=True).returncode == 0:
            break
    else:
        pytest.fail(NOT_PERMITTED)
    program = [sys.executable, "-m", "tests.acceptance.test_loopback_only", scenario]
    result = subprocess.run([*namespace, *program], cwd=ROOT, capture_output=True, text=True, timeout=120)
    assert result.returncode == 0, result.stdout + result.stderr
    report: dict[str, Any] = json.loads(result.stdout)
    return report


def test_the_demo_and_a_crawl_stay_on_loopback() -> None:
    report = in_namespace("stay")
    assert report["demo pages"] > 20
    assert "What was collected:" in report["demo"] and "200" in report["demo"]
    assert [line.split()[-2:] for line in report["advice"]] == [["demo", "--keep"]]
    assert report["left behind"] == []
    assert len(report["pasted"]) == 5 and set(report["pasted"].values()) == {0}, report["pasted"]
    assert report["crawled"] == report["expected"] > 20
    assert report["packets"] > 1_000, "the counters of the kernel do not count"
    assert report["sent"] == {"unroutable": 0, "datagrams": 0}


def test_what_leaves_or_asks_for_a_name_would_be_noticed() -> None:
    report = in_namespace("leave")
    assert report["after a datagram to loopback"]["datagrams"] == 1
    assert report["after a datagram to outside"]["unroutable"] == 1
    asked = report["after a crawl of a host that has to be looked up"]
    assert asked["unroutable"] + asked["datagrams"] > 2, report
    assert report["error"] in ("dns", "dns-not-found")


# What follows runs inside of the namespace.


def raise_loopback() -> None:
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as any_socket:
        request = struct.pack("16sh14x", b"lo", 0)
        flags = struct.unpack("16sh14x", fcntl.ioctl(any_socket, SIOCGIFFLAGS, request))[1]
        fcntl.ioctl(any_socket, SIOCSIFFLAGS, struct.pack("16sh14x", b"lo", flags | IFF_UP))


def counters() -> dict[str, int]:
    """Return the kernel's network counters of this namespace, IPv4 and IPv6."""
    found: dict[str, int] = {}
    lines = Path("/proc/net/snmp").read_text().splitlines()
    for names, values in zip(lines[::2], lines[1::2], strict=True):
        kind = names.split()[0].rstrip(":")
        for name, value in zip(names.split()[1:], values.split()[1:], strict=True):
            found[kind + name] = int(value)
    of_version_6 = Path("/proc/net/snmp6")
    if of_version_6.exists():
        found.update((name, int(value)) for name, value in map(str.split, of_version_6.read_text().splitlines()))
    return found


def sent() -> dict[str, int]:
    """Count the packets that a crawl of loopback must not send."""
    now = counters()
    names = ("Udp", "UdpLite", "Udp6", "UdpLite6")
    return {
        "unroutable": now["IpOutNoRoutes"] + now.get("Ip6OutNoRoutes", 0),
        "datagrams": sum(now.get(f"{name}OutDatagrams", 0) for name in names),
    }


def stay(folder: Path) -> dict[str, Any]:
    with served(folder, hosts=8, profile="calm", knobs=["crawl_delay=0.2"]) as web:
        seeds = web.write_seeds(folder / "seeds.txt", assume_https=True)
        options = [*crawl_options(folder / "data", delay=0.05), *web.reach]
        temporary = folder / "tmp"
        temporary.mkdir()
        demo, short_demo, crawl = rove_each(
            [
                ["demo", "--hosts", 30, "--seconds", 15, "--keep", folder / "demo"],
                ["demo", "--hosts", 5, "--seconds", 1],
                ["crawl", seeds, *options],
            ],
            env={**os.environ, "TMPDIR": str(temporary)},
        )
    assert demo.returncode == 0, demo.stderr
    assert short_demo.returncode == 0, short_demo.stderr
    assert "--resume" not in demo.stderr + short_demo.stderr, "the small web is gone"
    assert crawl.returncode == 0, crawl.stderr
    pages = exported_urls(folder / "data")
    assert pages == web.expected()
    return {
        "demo": demo.stdout,
        "pasted": pasted(demo.stdout.partition("Look further")[2]),
        "advice": advice_in(short_demo.stdout.partition("Nothing was kept")[2]),
        "left behind": [path.name for path in temporary.iterdir()],
        "demo pages": len(exported_urls(folder / "demo")),
        "crawled": len(pages),
        "expected": len(web.expected()),
        "packets": counters()["IpOutRequests"],
        "sent": sent(),
    }


def advice_in(text: str) -> list[str]:
    """Return the lines that can be pasted."""
    return [line.strip() for line in text.splitlines() if line.startswith("  ")]


def pasted(text: str) -> dict[str, int]:
    """Run the lines of a text that can be pasted, and return their exit codes."""
    with ThreadPoolExecutor(max_workers=3) as threads:
        lines = advice_in(text)
        results = threads.map(lambda line: subprocess.run(line, shell=True, capture_output=True).returncode, lines)
        return dict(zip(lines, results, strict=True))


def leave(folder: Path) -> dict[str, Any]:
    report: dict[str, Any] = {}
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as one:
        one.sendto(b"x", ("127.0.0.1", 9))
    report["after a datagram to loopback"] = sent()
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as one:
        try:
            one.connect(("192.0.2.1", 53))
        except OSError as error:
            report["outside"] = str(error)
    report["after a datagram to outside"] = sent()
    seeds = folder / "seeds.txt"
    seeds.write_text("http://somewhere.test/\n")
    options = ["--email", EMAIL, "--data-dir", folder / "data"]
    before = sum(sent().values())
    with started("crawl", seeds, *options):
        wait_for(lambda: sum(sent().values()) > before)
        report["after a crawl of a host that has to be looked up"] = sent()
        wait_for(lambda: frontier_rows(folder / "data", "SELECT 1 FROM request WHERE error > ''"))
    report["error"] = frontier_rows(folder / "data", "SELECT error FROM request")[0][0]
    return report


if __name__ == "__main__":
    raise_loopback()
    with tempfile.TemporaryDirectory() as folder:
        print(json.dumps({"stay": stay, "leave": leave}[sys.argv[1]](Path(folder))))
