"""A broad crawl with Scrapy, to compare rove with. The settings are those that its documentation recommends for broad
crawls (docs.scrapy.org, topics/broad-crawls), on the asyncio reactor.

It reads links and text, obeys robots.txt, and stores nothing. Names are not looked up: every connection goes to the
small web, which costs Scrapy less than DNS would. At the end it prints one line of JSON with its counts.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import os
import sys
from collections.abc import AsyncIterator, Iterator
from pathlib import Path
from typing import Any

import scrapy
from scrapy.crawler import CrawlerProcess
from scrapy.http import Response, TextResponse
from twisted.internet import defer
from twisted.internet.base import ThreadedResolver

SETTINGS: dict[str, Any] = {
    "TWISTED_REACTOR": "twisted.internet.asyncioreactor.AsyncioSelectorReactor",
    "REACTOR_THREADPOOL_MAXSIZE": 20,
    "LOG_LEVEL": "INFO",
    "COOKIES_ENABLED": False,
    "RETRY_ENABLED": False,
    "REDIRECT_ENABLED": False,
    "DOWNLOAD_TIMEOUT": 15,
    # Breadth first, as recommended where memory matters.
    "DEPTH_PRIORITY": 1,
    "SCHEDULER_MEMORY_QUEUE": "scrapy.squeues.FifoMemoryQueue",
    "ROBOTSTXT_OBEY": True,
    "TELNETCONSOLE_ENABLED": False,
    "USER_AGENT": "scrapy-bench (+bench@crawler.test)",
}

QUEUES = {
    "recommended": "scrapy.pqueues.DownloaderAwarePriorityQueue",
    "plain": "scrapy.pqueues.ScrapyPriorityQueue",
}
"""The recommended queue looks at every waiting host for each request that it hands out, so both are measured."""


class ToLoopback(ThreadedResolver):
    """Resolves every name to this machine."""

    @classmethod
    def from_crawler(cls, crawler: Any, reactor: Any) -> ToLoopback:
        return cls(reactor)

    def install_on_reactor(self) -> None:
        self.reactor.installResolver(self)

    def getHostByName(self, name: str, timeout: Any = ()) -> Any:
        return defer.succeed("127.0.0.1")


class BroadSpider(scrapy.Spider):
    """Follows every link and extracts every text."""

    name = "broad"

    def __init__(self, seeds: Path, port: int, seconds: float) -> None:
        super().__init__()
        self._seeds = seeds
        self._port = port
        self._seconds = seconds
        self._pages = 0
        self._errors = 0

    async def start(self) -> AsyncIterator[scrapy.Request]:
        from twisted.internet import reactor

        connect = reactor.connectTCP
        reactor.connectTCP = lambda host, port, *rest, **more: connect(host, self._port, *rest, **more)
        reactor.callLater(self._seconds, self._end)
        with self._seeds.open() as seeds:
            for line in seeds:
                # Only as there is room: if all were scheduled at once, everything else would wait for them.
                while self.crawler.engine.needs_backout():  # noqa: ASYNC110
                    await asyncio.sleep(0.01)
                yield scrapy.Request(line.strip(), errback=self._failed)

    def parse(self, response: Response) -> Iterator[Any]:
        self._pages += 1
        if not isinstance(response, TextResponse):
            return
        yield {
            "url": response.url,
            "title": response.xpath("//title/text()").get(),
            "text": " ".join(response.xpath("//body//text()").getall()),
        }
        for link in response.xpath("//a/@href").getall():
            yield scrapy.Request(response.urljoin(link), errback=self._failed)

    def _failed(self, failure: Any) -> None:
        self._errors += not failure.check(scrapy.exceptions.IgnoreRequest)

    def _end(self) -> None:
        """Exit at once. A regular shutdown would wait out the delays of everything that is queued."""
        sys.stdout.write(json.dumps({"pages": self._pages, "errors": self._errors}) + "\n")
        sys.stdout.flush()
        os._exit(0)


def main() -> None:
    """Crawl for the given number of seconds."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("seeds", type=Path)
    parser.add_argument("--port", type=int, required=True)
    parser.add_argument("--seconds", type=float, required=True)
    parser.add_argument("--concurrency", type=int, default=100)
    parser.add_argument("--delay", type=float, default=0.0)
    parser.add_argument("--queue", choices=QUEUES, default="recommended")
    options = parser.parse_args()
    process = CrawlerProcess(
        {
            **SETTINGS,
            "TWISTED_DNS_RESOLVER": ToLoopback,
            "SCHEDULER_PRIORITY_QUEUE": QUEUES[options.queue],
            "CONCURRENT_REQUESTS": options.concurrency,
            "DOWNLOAD_DELAY": options.delay,
            "RANDOMIZE_DOWNLOAD_DELAY": False,
        }
    )
    process.crawl(BroadSpider, seeds=options.seeds, port=options.port, seconds=options.seconds)
    process.start()


if __name__ == "__main__":
    main()
