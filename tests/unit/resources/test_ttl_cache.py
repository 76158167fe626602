"""The cache drops expired values and, when full, the least recently used one."""

from __future__ import annotations

from rove.resources.ttl_cache import TtlCache


def test_a_value_is_returned_until_it_expires() -> None:
    cache = TtlCache[str, int](10)
    assert cache.get("a", 0.0) is None
    cache.put("a", 1, expires=5.0)
    assert cache.get("a", 4.9) == 1
    assert cache.get("a", 5.0) is None
    assert cache.get("a", 4.9) is None, "an expired value is removed when it is looked up"


def test_a_new_value_replaces_the_old_one_and_its_expiry() -> None:
    cache = TtlCache[str, int](10)
    cache.put("a", 1, expires=5.0)
    cache.put("a", 2, expires=9.0)
    assert cache.get("a", 6.0) == 2


def test_the_least_recently_used_value_is_dropped() -> None:
    cache = TtlCache[str, int](2)
    cache.put("a", 1, expires=9.0)
    cache.put("b", 2, expires=9.0)
    assert cache.get("a", 1.0) == 1
    cache.put("c", 3, expires=9.0)
    assert [cache.get(key, 1.0) for key in "abc"] == [1, None, 3]
