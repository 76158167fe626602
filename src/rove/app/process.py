"""Puts the parts of one crawling process together, and takes them apart at the end."""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from functools import partial

from rove import __version__
from rove.admin.apply_exclusions import follow_exclusions
from rove.admin.apply_rules import are_rules_applied
from rove.app.seeds import all_seeds_loaded
from rove.config import Settings
from rove.crawl.context import CrawlContext
from rove.crawl.inflight_log import InflightLog
from rove.crawl.limits import RemainingLimits
from rove.crawl.loop import Crawl
from rove.crawl.meter import Meter
from rove.crawl.new_domains import NewDomainLimits
from rove.crawl.pressure import Pressure
from rove.crawl.progress import Progress
from rove.crawl.seed_scope import ScopeCheck
from rove.crawl.shutdown import Shutdown
from rove.crawl.silence import SilentVisits
from rove.datadir import DataDir
from rove.fetch.address import AddressGuard
from rove.fetch.address_room import AddressRoom
from rove.fetch.connect_to import parse_connect_to
from rove.fetch.dns import AresLookup, CachingResolver, parse_name_server
from rove.fetch.http import CurlFetcher
from rove.fetch.limits import limits_within
from rove.fetch.own_addresses import OwnAddresses
from rove.fetch.phases import Phases
from rove.fetch.tls import authorities_for
from rove.frontier.backends import form_of
from rove.frontier.clock import steady_seconds
from rove.frontier.contract import Catalog, Frontier
from rove.policy.concurrency import Bounds
from rove.policy.exclusions import Exclusions
from rove.policy.gate import Gate
from rove.policy.identity import user_agent
from rove.policy.outage import OutageRules
from rove.policy.spread import Spread
from rove.resources.open_files import FileKind, files_by_kind
from rove.resources.spare_files import SpareFiles
from rove.store.contract import Keep
from rove.store.warc import WarcStore


@asynccontextmanager
async def assembled(
    *,
    data: DataDir,
    settings: Settings,
    frontier: Frontier,
    catalog: Catalog,
    bounds: Bounds,
    processes: int,
    name: str,
    process: str,
    remaining_limits: RemainingLimits,
    on_news: Callable[[str], None],
    outage_rules: OutageRules,
    backoffs_end: float,
    is_trial: bool = False,
) -> AsyncIterator[Crawl]:
    """Put the parts of a crawl in this process together, and close them at the end.

    `processes` counts those that crawl on this machine. `name` starts the names of its WARC files, and `process` is its
    name in the figures; `on_news` shows a sentence to the user. With `is_trial`, the process only tries suspects.
    """
    spare = SpareFiles()
    meter = Meter(process, delay=settings.delay, clock=steady_seconds)
    phases = Phases(meter.histogram)
    resolver = _resolver(settings, phases)
    fetcher = _fetcher(settings, processes, resolver, phases)
    form = await form_of(catalog, settings)
    store = _store(data, settings, name, spare)
    inflight_log = InflightLog(data.inflight_log, frontier.process, spare)
    pressure = Pressure(
        settings,
        bounds=bounds,
        directory=data.root,
        clock=steady_seconds,
        on_news=on_news,
        processes=processes,
        lag_seconds=lambda: fetcher.lag_seconds,
        longest_lag=lambda: fetcher.longest_lag,
    )
    try:
        context = CrawlContext(
            settings=settings,
            frontier=frontier,
            fetcher=fetcher,
            store=store,
            gate=await gate_of(catalog, settings),
            scope=ScopeCheck(frontier, settings.scope, steady_seconds),
            form=form,
            inflight_log=inflight_log,
            pressure=pressure,
            silence=SilentVisits(pressure.throttle, steady_seconds),
            new_domains=NewDomainLimits(steady_seconds),
            spread=Spread(settings.delay, random.random),
            progress=Progress(started=steady_seconds()),
            meter=meter,
            shutdown=Shutdown(frontier),
            clock=steady_seconds,
            count_files=partial(count_files, data, frontier),
            take_longest_lag=fetcher.take_longest_lag,
            fetcher_accounts=lambda: {**resolver.accounts(), **fetcher.accounts()},
        )
        yield Crawl(
            context,
            remaining_limits=remaining_limits,
            all_seeds_loaded=partial(all_seeds_loaded, catalog, settings),
            are_rules_applied=partial(are_rules_applied, catalog, settings.rules),
            follow_exclusions=partial(follow_exclusions, catalog),
            on_news=on_news,
            outage_rules=outage_rules,
            backoffs_end=backoffs_end,
            is_trial=is_trial,
        )
    finally:
        await fetcher.close()
        await store.close()
        inflight_log.close()
        spare.close()


def count_files(data: DataDir, frontier: Frontier) -> Counter[FileKind]:
    """Count the open files of this process."""
    return files_by_kind(data.frontier.with_suffix(""), connections=sum(frontier.connections().values()))


def _resolver(settings: Settings, phases: Phases) -> CachingResolver:
    servers = [parse_name_server(text) for text in settings.dns_servers] or None
    return CachingResolver(AresLookup(servers=servers), clock=steady_seconds, on_lookup=phases.note_lookup)


def _fetcher(settings: Settings, processes: int, resolver: CachingResolver, phases: Phases) -> CurlFetcher:
    return CurlFetcher(
        user_agent=user_agent(settings.email, settings.info_url),
        resolver=resolver,
        guard=AddressGuard(allow_private=settings.allow_private_addresses, own=OwnAddresses()),
        connect_to=[parse_connect_to(rule) for rule in settings.connect_to],
        limits=limits_within(settings.timeout),
        room=_address_room(settings, processes),
        authorities=authorities_for(strict=settings.strict_tls),
        strict_tls=settings.strict_tls,
        phases=phases,
    )


def _address_room(settings: Settings, processes: int) -> AddressRoom | None:
    """Return this process's part of the limits on visits to one address; None if there are none."""
    if not settings.per_ip and not settings.per_ip_rate:
        return None
    return AddressRoom(
        at_once=max(1, settings.per_ip // processes) if settings.per_ip else None,
        per_second=settings.per_ip_rate / processes if settings.per_ip_rate else None,
    )


def _store(data: DataDir, settings: Settings, name: str, spare: SpareFiles) -> WarcStore:
    return WarcStore(
        data.warc,
        keep=Keep(settings.store),
        name=name,
        software=f"rove/{__version__}",
        info={
            "operator": settings.email,
            "http-header-user-agent": user_agent(settings.email, settings.info_url),
            "robots": "obey",
        },
        max_file_bytes=settings.warc_size,
        spare=spare,
    )


async def gate_of(catalog: Catalog, settings: Settings) -> Gate:
    """Return the gate with the exclusions that are in force."""
    exclusions = Exclusions(await catalog.exclusions())
    return Gate(
        exclusions,
        max_depth=settings.max_depth,
        file_types=settings.skipped_file_types,
        languages=settings.languages,
        rules=settings.rules,
    )
