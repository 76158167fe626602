"""Keys of URLs: what they drop and how they are ordered. `make interop` compares them with the package `surt`."""

from __future__ import annotations

import pytest

from rove.export.surt import surt, surt_host

SESSION = "0123456789abcdef0123456789abcdef"


@pytest.mark.parametrize(
    ("url", "key"),
    [
        ("http://archive.org/", "org,archive)/"),
        ("http://archive.org", "org,archive)/"),
        ("http://archive.org/?", "org,archive)/"),
        ("http://www.archive.org/goo/", "org,archive)/goo"),
        ("http://www2.archive.org/goo/?", "org,archive)/goo"),
        ("http://www.com/", "com)/"),
        ("http://wwwx.com/", "com,wwwx)/"),
        ("http://archive.org:80/", "org,archive)/"),
        ("https://archive.org:443/", "org,archive)/"),
        ("http://archive.org:443/", "org,archive:443)/"),
        ("http://user:pass@archive.org/", "org,archive)/"),
        ("http://archive.org/goo/?a&b", "org,archive)/goo?a&b"),
        ("http://archive.org/goo/?b&a", "org,archive)/goo?a&b"),
        ("http://archive.org/goo/?a=2&b&a=1", "org,archive)/goo?a=1&a=2&b"),
        ("http://archive.org/goo/?a=&a", "org,archive)/goo?a&a="),
        ("http://archive.org/?&", "org,archive)/?&"),
        ("http://archive.org/GOO/?B=C", "org,archive)/goo?b=c"),
        ("http://archive.org/goo#part", "org,archive)/goo"),
        ("http://archive.org/a/./b/../c", "org,archive)/a/c"),
        ("http://archive.org/../a", "org,archive)/../a"),
        ("http://archive.org//a///b//", "org,archive)/a/b"),
        ("http://archive.org/%2e%2E/a%41", "org,archive)/../aa"),
        ("http://archive.org/%2541", "org,archive)/a"),
        ("http://archive.org/a%20b%25", "org,archive)/a%20b%25"),
        ("http://archive.org/%C3%A4?q=%c3%a4", "org,archive)/%c3%a4?q=%c3%a4"),
        ("http://archive.org/?q=a%26b=1", "org,archive)/?b=1&q=a"),
        (f"http://archive.org/index.html?a=b&jsessionid={SESSION}&c=d", "org,archive)/index.html?a=b&c=d"),
        (f"http://archive.org/?jsessionid={SESSION}", "org,archive)/"),
        (f"http://archive.org/?PHPSESSID={SESSION}&a=b", "org,archive)/?a=b"),
        (f"http://archive.org/?sid={SESSION[:-1]}", f"org,archive)/?sid={SESSION[:-1]}"),
        ("http://archive.org/?x=y&CFID=1&CFTOKEN=2", "org,archive)/?&x=y"),
        ("http://archive.org/(a(4hqa0555fwsecu455xqckv45))/f.aspx", "org,archive)/f.aspx"),
        ("http://archive.org/(4hqa0555fwsecu455xqckv45)/f.aspx", "org,archive)/f.aspx"),
        ("http://127.0.0.1:8080/", "1,0,0,127:8080)/"),
        ("http://[2001:db8::1]/", "2001:db8::1)/"),
        ("http://[2001:db8::1]:81/", "2001:db8::1:81)/"),
        ("http://xn--mnchen-3ya.de/", "de,xn--mnchen-3ya)/"),
    ],
)
def test_the_key_of_a_url(url: str, key: str) -> None:
    assert surt(url) == key
    assert surt_host(url) == key.partition(")")[0]
