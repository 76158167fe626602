"""The seeds of a domain and what they redirect to, in every frontier."""

from __future__ import annotations

from tests.contract.harness import Harness, url


async def test_the_roots_of_a_domain_are_its_pages_of_depth_0(harness: Harness) -> None:
    frontier = await harness.open()
    seeds = [url("http://a.test/docs/"), url("http://www.a.test/"), url("http://b.test/")]
    await frontier.add(seeds, as_seeds=True)
    await frontier.add([url("http://a.test/moved"), url("http://a.test/link", depth=1)])
    await frontier.add([url("http://a.test/map.xml")._replace(sitemap_of="a.test")])
    await frontier.want_robots([url("http://a.test/robots.txt")])
    a, b, unknown = (url(f"http://{host}/").domain for host in ("a.test", "b.test", "c.test"))
    roots = await frontier.roots([a, b, unknown])
    assert {domain: sorted(urls) for domain, urls in roots.items()} == {
        a: [("http://a.test/docs/", True), ("http://a.test/moved", False), ("http://www.a.test/", True)],
        b: [("http://b.test/", True)],
    }
    assert await harness.reader().roots([b]) == {b: [("http://b.test/", True)]}
    assert await frontier.roots([]) == {}
    await frontier.mark_seeds([(a, url("http://a.test/link").fingerprint)])
    assert ("http://a.test/link", True) in (await frontier.roots([a]))[a]
