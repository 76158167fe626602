"""Serve the web of a benchmark from one or more processes: `python -m benchmarks.web_server --hosts 1000 --log FILE`.

It prints `listening on 127.0.0.1:PORT` and serves until its standard input ends.
"""

from __future__ import annotations

import argparse
import os
import socket
import sys
from functools import partial
from pathlib import Path

import uvloop

from benchmarks.secured import Secured, server_context
from benchmarks.web import WebPlan
from rove.demo.server import SmallWebServer, bound_socket, serve


def main() -> None:
    """Serve a web. The kernel distributes connections among the processes, which share the port."""
    options = _options().parse_args()
    web = WebPlan(hosts=options.hosts, knobs=tuple(options.set), pages=options.pages).web
    web.prepare()
    secured = options.certificate and partial(Secured, context=server_context(options.certificate))
    listeners = _shared_port(options.processes)
    lifeline, lifeline_end = os.pipe()
    children = []
    for listener in listeners[1:]:
        child = os.fork()
        if child == 0:
            # The pipe ends when the first process ends, for whatever reason.
            os.close(lifeline_end)
            server = SmallWebServer(web, log=options.log, secured=secured)
            uvloop.run(serve(server, listener, stop_at_eof=lifeline, announce=False))
            os._exit(0)
        children.append(child)
        listener.close()
    server = SmallWebServer(web, log=options.log, secured=secured)
    uvloop.run(serve(server, listeners[0], stop_at_eof=sys.stdin.fileno()))
    os.close(lifeline_end)
    for child in children:
        os.waitpid(child, 0)


def _shared_port(count: int) -> list[socket.socket]:
    first = bound_socket(0, shared=True)
    port = first.getsockname()[1]
    return [first, *(bound_socket(port, shared=True) for _ in range(count - 1))]


def _options() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--hosts", type=int, required=True)
    parser.add_argument("--log", type=Path, required=True)
    parser.add_argument("--set", action="append", default=[], metavar="KNOB=VALUE")
    parser.add_argument("--pages", default="", help="folder of real pages for a real web")
    parser.add_argument("--processes", type=int, default=1)
    parser.add_argument("--certificate", type=Path, help="PEM file with certificate and key: speak https")
    return parser


if __name__ == "__main__":
    main()
