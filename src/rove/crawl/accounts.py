"""What fills a crawling process, by rove's own accounts: queues, buffers and caches."""

from __future__ import annotations

from rove.crawl.claimer import Claimer
from rove.crawl.context import CrawlContext
from rove.crawl.outage import OutageWatch
from rove.crawl.writer import BatchWriter
from rove.notation.humanize import counted, size_text


def accounts_of(context: CrawlContext, claimer: Claimer, writer: BatchWriter, outage: OutageWatch) -> dict[str, str]:
    """Return names and texts. Another thread may call this, so everything is only read."""
    pressure, progress, seen = context.pressure, context.progress, context.seen
    memory, texts = pressure.memory, writer.known_texts
    return {
        "visits in flight": f"{progress.in_flight:,} of at most {pressure.throttle.allowed:,}",
        "leases that wait for a slot": f"{claimer.queued:,}",
        "finished visits to be written": f"{writer.unsettled:,}",
        "visits held back, because no site answers": f"{outage.held:,}",
        "bodies and pages": (
            f"{size_text(memory.held)} held, {size_text(memory.used)} of {size_text(memory.room)} used or reserved, "
            f"{counted(memory.waiting, 'transfer')} waiting"
        ),
        "links known to be in the frontier": f"{len(seen):,}, about {size_text(seen.bytes)}",
        "texts that domains have served": f"{texts.remembered:,}, about {size_text(texts.bytes)}",
        "new texts whose visits are not settled": f"{texts.in_transit:,}",
        "domains that brought new domains": f"{context.new_domains.remembered:,}",
        "long robots.txt files to be read": f"{context.long_robots.waiting:,}",
        **context.fetcher_accounts(),
    }
