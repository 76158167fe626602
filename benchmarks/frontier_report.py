"""Tables and plots of benchmarks.frontier."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from benchmarks import plot

TARGETS = {"links": 60_000.0, "claims": 15_000.0}


def links_table(results: Sequence[dict[str, Any]]) -> str:
    """Return the table of added links."""
    rows = [
        {
            "frontier": result["frontier"],
            "URLs": result["urls"],
            "links": _kind(links),
            "processes": links["processes"],
            "links/s": links["per_s"],
            "each process": ", ".join(f"{rate:,.0f}" for rate in links["each_per_s"]),
            "client µs/link": links["client_us"],
            "server µs/link": links.get("server_us"),
            "load": links["load"],
        }
        for result in results
        for links in result["links"]
    ]
    return plot.markdown(rows)


def claims_table(results: Sequence[dict[str, Any]]) -> str:
    """Return the table of claims and settles."""
    rows = [
        {
            "frontier": result["frontier"],
            "URLs": result["urls"],
            "processes": claims["processes"],
            "request rows": "written" if claims["with_requests"] else "none",
            "claims + settles/s": claims["per_s"],
            "claim p50 ms": claims["claim_p50_ms"],
            "claim p99 ms": claims["claim_p99_ms"],
            "client µs": claims["client_us"],
            "server µs": claims.get("server_us"),
            "load": claims["load"],
        }
        for result in results
        for claims in result["claims"]
    ]
    return plot.markdown(rows)


def buffers_table(results: Sequence[dict[str, Any]]) -> str:
    """Return the table of buffers that a claim touches."""
    rows = [
        {
            "URLs": result["urls"],
            "domains": result["domains"],
            "buffers/claim, filled": result["buffers"],
            "after claims and settles": result["buffers_after"],
            "the same without bound": result["buffers_after_unbounded"],
            "filled in s": result["fill_s"],
        }
        for result in results
        if "buffers" in result
    ]
    return plot.markdown(rows) if rows else ""


def wear_table(worn: Sequence[dict[str, Any]]) -> str:
    """Return the table of what claims cost after many settles."""
    rows = [
        {
            "PostgreSQL": row["when"],
            "claims + settles/s": row.get("per_s"),
            "claim p50 ms": row.get("claim_p50_ms"),
            "claim p99 ms": row.get("claim_p99_ms"),
            "last tenth p50 ms": row.get("last_tenth_p50_ms"),
            "buffers/claim": row["buffers"],
            "without bound": row["buffers_unbounded"],
            "load": row["load"],
            "MB": ", ".join(f"{name} {size:g}" for name, size in row["megabytes"].items()),
        }
        for row in worn
    ]
    return plot.markdown(rows)


def draw(folder: Path, results: Sequence[dict[str, Any]], worn: Sequence[dict[str, Any]]) -> None:
    """Draw the plots into a folder."""
    x = "URLs in the frontier"
    links: dict[str, list[tuple[float, float]]] = {}
    claims: dict[str, list[tuple[float, float]]] = {}
    touched: dict[str, list[tuple[float, float]]] = {}
    for result in results:
        name, urls = result["frontier"], result["urls"]
        for one in result["links"]:
            key = f"{name}, {_kind(one)}, {one['processes']} process(es)"
            links.setdefault(key, []).append((urls, one["per_s"]))
        for one in result["claims"]:
            key = f"{name}, {one['processes']} process(es)"
            key += ", with request rows" if one["with_requests"] else ""
            claims.setdefault(key, []).append((urls, one["per_s"]))
        if "buffers" in result:
            touched.setdefault("filled", []).append((urls, result["buffers"]))
            touched.setdefault("after claims", []).append((urls, result["buffers_after"]))
    for row in worn[1:]:
        touched[row["when"]] = [(row["urls"], row["buffers"])]
    plots = (
        ("links", links, "Links added, 70 % of them known", "links/s"),
        ("claims", claims, "Domains claimed and settled", "per second"),
    )
    for name, series, title, y in plots:
        path = folder / f"{name}.svg"
        plot.lines(path, series, title=title, x=x, y=y, target=TARGETS[name])
    if touched:
        plot.lines(
            folder / "buffers.svg",
            touched,
            title="Buffers that a claim touches on PostgreSQL",
            x=x,
            y="buffers per domain claimed",
        )


def _kind(links: Mapping[str, Any]) -> str:
    return "60 a page" if links["by_page"] else "scattered"
