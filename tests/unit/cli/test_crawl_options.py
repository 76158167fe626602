"""Options of `rove crawl`: from the command line, from a file, and lifted."""

from __future__ import annotations

from dataclasses import fields
from pathlib import Path
from typing import Any

import click
import pytest

from rove.app.preparation import CrawlOptions
from rove.cli.config_file import sources_of
from rove.cli.crawl import crawl, crawl_options
from rove.cli.machines import join
from rove.cli.types import Liftable
from rove.config import Limits, Settings
from rove.errors import UsageError
from rove.policy.scope import SeedScope

DEFAULTS = {field.name: field.default for kind in (Settings, Limits) for field in fields(kind)}


def parsed(*words: object) -> CrawlOptions:
    """Return what a command line means."""
    context = crawl.make_context("crawl", [str(word) for word in words])
    return crawl_options(dict(context.params), sources_of(context))


@pytest.fixture
def config(tmp_path: Path) -> Path:
    return tmp_path / "rove.toml"


def from_file(config: Path, text: str, *words: object) -> CrawlOptions:
    config.write_text(text)
    return parsed("--config", config, *words)


def test_nothing_given_is_nothing_changed() -> None:
    options = parsed("--resume")
    assert (options.settings, options.limits, options.sources, options.yes) == ({}, {}, {}, False)


@pytest.mark.parametrize(
    ("words", "name", "value"),
    [
        ("--delay 90", "delay", 90.0),
        ("--delay 1h30m", "delay", 5_400.0),
        ("--delay 0", "delay", 0.0),
        ("--delay 0.05", "delay", 0.05),
        ("--timeout 2m", "timeout", 120.0),
        ("--timeout 30", "timeout", 30.0),
        ("--horizon 2d", "horizon", 172_800.0),
        ("--max-depth 0", "max_depth", 0),
        ("--per-ip 3", "per_ip", 3),
        ("--per-ip 0", "per_ip", 0),
        ("--per-ip-rate 0.5", "per_ip_rate", 0.5),
        ("--max-links 7", "max_links", 7),
        ("--redirect-hops 0", "redirect_hops", 0),
        ("--store both", "store", "both"),
        ("--file-types visit", "file_types", "visit"),
        ("--skip-extension .DAT --skip-extension xyz", "skip_extensions", ("dat", "xyz")),
        ("--max-page-size 500KiB", "max_page_size", 500 << 10),
        ("--max-memory 2G", "max_memory", 2 << 30),
        ("--min-free-disk 0", "min_free_disk", 0),
        ("--concurrency 9", "concurrency", 9),
        ("--sitemaps", "sitemaps", True),
        ("--no-sitemaps", "sitemaps", False),
        ("--scope path", "scope", SeedScope.PATH),
        ("--scope default", "scope", SeedScope.ANYWHERE),
        ("--accept seed --accept depth<2", "accept", ("seed", "depth<2")),
        ("--reject depth>3", "reject", ("depth>3",)),
        ("--store-if status==200", "store_if", ("status==200",)),
        ("--follow-if none", "follow_if", ()),
        ("--no-sitemaps", "sitemaps", False),
        ("--no-strict-tls", "strict_tls", False),
        ("--no-allow-short-delay", "allow_short_delay", False),
        ("--no-allow-private-addresses", "allow_private_addresses", False),
        ("--max-depth none", "max_depth", None),
        ("--info-url none", "info_url", None),
        ("--horizon none", "horizon", None),
        ("--connect-to none", "connect_to", ()),
        ("--dns-server NONE", "dns_servers", ()),
        ("--delay default", "delay", 70.0),
        ("--per-ip default", "per_ip", 10),
        ("--per-ip-rate default", "per_ip_rate", 10.0),
        ("--timeout default", "timeout", 60.0),
        ("--store default", "store", "text"),
        ("--file-types default", "file_types", "skip"),
        ("--skip-extension none", "skip_extensions", ()),
        ("--max-links default", "max_links", 2_000),
        ("--max-memory default", "max_memory", 1 << 30),
        ("--concurrency auto", "concurrency", "auto"),
        ("--concurrency default", "concurrency", "auto"),
    ],
)
def test_a_setting(words: str, name: str, value: Any) -> None:
    assert parsed(*words.split()).settings == {name: value}


def test_rules_from_a_file_replace_all_others(tmp_path: Path) -> None:
    file = tmp_path / "my-rules"
    file.write_text('# only German pages\naccept tld == "de"\nreject path ~ "/tag/"\n')
    given = {"accept": ('tld == "de"',), "reject": ('path ~ "/tag/"', "depth > 3"), "store_if": (), "follow_if": ()}
    assert parsed("--rules", file, "--reject", "depth > 3").settings == given
    assert parsed("--rules", "none").settings == dict.fromkeys(given, ())
    with pytest.raises(UsageError, match=f"the rules file {tmp_path} cannot be read: Is a directory"):
        parsed("--rules", tmp_path)
    file.write_bytes(b"accept \xff")
    with pytest.raises(UsageError, match="is not UTF-8 text"):
        parsed("--rules", file)
    file.write_text("accept tld = 1")
    with pytest.raises(UsageError, match=f"{file}, line 1, after accept: column 5 of 'tld = 1': expected '=='"):
        parsed("--rules", file)


def test_a_bad_rule_is_refused_where_it_is_bad(config: Path) -> None:
    with pytest.raises(click.BadParameter, match=r"column 8 of 'tld in \"de\"': expected '\(' after in"):
        parsed("--accept", 'tld in "de"')
    options = from_file(config, """reject = ['path ~ "/tag/"', "seed"]""")
    assert options.settings == {"reject": ('path ~ "/tag/"', "seed")}
    with pytest.raises(UsageError, match=r"store-if: column 1 of 'hots': there is no fact hots; did you mean host?"):
        from_file(config, 'store-if = "hots"')


@pytest.mark.parametrize(
    ("words", "limits"),
    [
        ("--max-pages 10", {"max_pages": 10}),
        ("--max-duration 1h30m", {"max_duration": 5_400.0}),
        ("--max-duration 90", {"max_duration": 90.0}),
        ("--max-pages none --max-duration none", {"max_pages": None, "max_duration": None}),
        ("--max-pages-per-domain none", {"max_pages_per_domain": None}),
    ],
)
def test_a_limit(words: str, limits: dict[str, Any]) -> None:
    assert parsed(*words.split()).limits == limits


@pytest.mark.parametrize(
    ("words", "address"),
    [("--metrics 9464", "127.0.0.1:9464"), ("--metrics 0.0.0.0:80", "0.0.0.0:80"), ("--metrics [::1]:0", "[::1]:0")],
)
def test_the_address_of_the_metrics_is_not_remembered(words: str, address: str) -> None:
    options = parsed("--resume", *words.split())
    assert options.metrics is not None and options.metrics.host_and_port == address
    assert (options.settings, options.machine_settings) == ({}, {})


def test_a_duration_of_two_words() -> None:
    assert parsed("--max-duration", "2d 4h").limits == {"max_duration": 187_200.0}


def test_every_setting_can_be_lifted() -> None:
    """All but the e-mail address, which a crawl must have, and --drop-param, which cannot change."""
    lifted = {"email", "drop_params"}
    for parameter in crawl.params:
        if parameter.name in DEFAULTS and isinstance(parameter, click.Option):
            if parameter.is_flag:
                assert parameter.secondary_opts == [f"--no-{parameter.opts[0][2:]}"]
                lifted.add(parameter.name)
            elif isinstance(parameter.type, Liftable):
                options = parsed(parameter.opts[0], parameter.type.word)
                assert {**options.settings, **options.limits} == {parameter.name: DEFAULTS[parameter.name]}
                lifted.add(parameter.name)
    assert lifted == DEFAULTS.keys() - {
        "limits",
        "longest_plan",
        "numbered_rules",
        "pages_before",
        "seconds_before",
        "epoch",
    }


@pytest.mark.parametrize(
    ("words", "complaint"),
    [
        ("--max-duration soon", "'--max-duration': 'soon' is not a duration; write 90, 90s"),
        ("--max-duration 0", "'--max-duration': '0' is not a duration"),
        ("--horizon 0s", "'--horizon': '0s' is not a duration"),
        ("--delay nan", "'--delay': 'nan' is not a duration"),
        ("--delay=-1", "'--delay': '-1' is not a duration"),
        ("--delay none", "'--delay': 'none' means nothing here"),
        ("--max-pages 0", "'--max-pages'"),
        ("--max-pages ten", "'--max-pages'"),
        ("--max-pages default", "'--max-pages'"),
        ("--max-memory much", "'--max-memory': 'much' is not a size"),
        ("--store pictures", "'--store': 'pictures' is not one of"),
        ("--file-types take", "'--file-types': 'take' is not one of"),
        ("--skip-extension tar.gz", "'--skip-extension': 'tar.gz' is not a file extension"),
        ("--connect-to nonsense", "'--connect-to'"),
        ("--dns-server dns.test", "'--dns-server'"),
        ("--redirect-hops 6", "'--redirect-hops'"),
    ],
)
def test_a_bad_value_is_refused_with_its_option(words: str, complaint: str) -> None:
    with pytest.raises(click.BadParameter) as caught:
        parsed(*words.split())
    assert complaint in caught.value.format_message()


def test_none_stands_alone() -> None:
    with pytest.raises(UsageError, match="'none' cannot be combined"):
        parsed("--connect-to", "none", "--connect-to", "*.test=127.0.0.1:80")


# From a file


def test_a_file_gives_every_kind_of_option(config: Path) -> None:
    options = from_file(
        config,
        """
        seeds = "seeds.txt"
        email = "me@crawler.test"
        resume = true
        data-dir = "/srv/crawl"
        delay = "1h30m"
        timeout = 30.5
        max-pages = 1_000
        max-duration = "2d 4h"
        max-pages-per-domain = "none"
        max-depth = "none"
        strict-tls = true
        scope = "host"
        sitemaps = false
        store = "both"
        max-memory = "2GiB"
        min-free-disk = 0
        connect-to = ["*.a.test=127.0.0.1:80", "*.b.test=127.0.0.1:81"]
        dns-server = "9.9.9.9"
        processes = 2
        log-level = "debug"
        """,
    )
    assert (options.seeds, options.resume, options.data_dir) == ("seeds.txt", True, Path("/srv/crawl"))
    assert (options.processes, options.log_level) == (2, "debug")
    assert options.limits == {"max_pages": 1_000, "max_duration": 187_200.0, "max_pages_per_domain": None}
    assert options.settings == {
        "email": "me@crawler.test",
        "delay": 5_400.0,
        "timeout": 30.5,
        "max_depth": None,
        "strict_tls": True,
        "scope": SeedScope.HOST,
        "sitemaps": False,
        "store": "both",
        "max_memory": 2 << 30,
        "min_free_disk": 0,
        "connect_to": ("*.a.test=127.0.0.1:80", "*.b.test=127.0.0.1:81"),
        "dns_servers": ("9.9.9.9",),
    }
    assert options.sources["delay"] == options.sources["max_pages"] == str(config)


def test_the_command_line_wins_over_the_file(config: Path) -> None:
    text = 'delay = 100\nmax-pages = 5\nsitemaps = true\nconnect-to = ["*.a.test=127.0.0.1:80"]\nseeds = "file"\n'
    words = ["--delay", 200, "--no-sitemaps", "--connect-to", "*.b.test=127.0.0.1:81", "given"]
    options = from_file(config, text, *words)
    assert options.settings == {"delay": 200.0, "sitemaps": False, "connect_to": ("*.b.test=127.0.0.1:81",)}
    assert options.limits == {"max_pages": 5}
    assert options.seeds == "given"
    assert set(options.sources) == {"max_pages"}


def test_the_order_of_the_options_does_not_matter(config: Path) -> None:
    config.write_text("delay = 100\nmax-depth = 1\n")
    for words in (["--config", config, "--delay", 200], ["--delay", 200, "--config", config]):
        assert parsed(*words).settings == {"delay": 200.0, "max_depth": 1}


@pytest.mark.parametrize("text", ["connect-to = []", 'connect-to = "none"', 'connect-to = ["none"]'])
def test_a_file_lifts_a_list(config: Path, text: str) -> None:
    assert from_file(config, text).settings == {"connect_to": ()}


def test_an_empty_file_gives_nothing(config: Path) -> None:
    options = from_file(config, "# nothing\n")
    assert (options.settings, options.limits) == ({}, {})


@pytest.mark.parametrize(
    ("text", "complaint"),
    [
        ("max-page = 5", "there is no option max-page; did you mean max-pages?"),
        ("max_pages = 5", "there is no option max_pages; did you mean max-pages?"),
        ("colour = 5", "there is no option colour; the keys are the options of rove crawl"),
        ("yes = true", "there is no option yes"),
        ('config = "other.toml"', "there is no option config"),
        ("max-pages = 'ten'", "max-pages: 'ten' is not a whole number from 1 to 1,000,000,000"),
        ("max-pages = 0", "max-pages: '0' is not a whole number from 1"),
        ("max-pages = 1.5", "max-pages: '1.5' is not a whole number from 1"),
        ("max-pages = true", "max-pages must be a text or a number, not true"),
        ("max-pages = [1, 2]", "max-pages must be a text or a number, not a list"),
        ("sitemaps = 1", "sitemaps must be true or false, not a number"),
        ('sitemaps = "yes"', "sitemaps must be true or false, not a text"),
        ("delay = 'soon'", "delay: 'soon' is not a duration"),
        ("delay = 2026-11-18", "delay must be a text or a number, not a date or time"),
        ("max-memory = 'much'", "max-memory: 'much' is not a size"),
        ("store = 'pictures'", "store: 'pictures' is not one of"),
        ("connect-to = ['nonsense']", "connect-to: "),
        ("connect-to = [[]]", "connect-to must be a text or a list of texts, not a list"),
        ("[crawl]\ndelay = 100", "there is no option crawl"),
        ("[delay]\nx = 1", "delay must be a text or a number, not a table"),
        ("max-pages = ", "is not a TOML file: "),
        ("a = 1\na = 2", "is not a TOML file: "),
    ],
)
def test_a_bad_file_is_refused_with_the_file_and_the_key(config: Path, text: str, complaint: str) -> None:
    with pytest.raises(UsageError) as caught:
        from_file(config, text)
    assert str(caught.value).startswith(str(config))
    assert complaint in str(caught.value)


def test_a_file_that_is_not_text_or_not_there_is_refused(config: Path) -> None:
    with pytest.raises(UsageError, match=r"the configuration file .*rove\.toml cannot be read: No such file"):
        parsed("--config", config)
    config.write_bytes(b"\xff\xfe")
    with pytest.raises(UsageError, match=r"rove\.toml is not a TOML file"):
        parsed("--config", config)


def test_a_password_in_a_file_is_not_repeated(config: Path) -> None:
    with pytest.raises(UsageError) as caught:
        from_file(config, 'frontier = ["postgresql://me:secret@db.test/"]')
    assert "secret" not in str(caught.value)


def test_a_machine_that_joins_reads_a_file_too(config: Path) -> None:
    config.write_text('frontier = "postgresql://db.test/x"\nmax-memory = "2GiB"\n')
    context = join.make_context("join", ["--config", str(config)])
    assert context.params["frontier"] == "postgresql://db.test/x"
    assert context.params["max_memory"] == 2 << 30
    config.write_text("max-pages = 3\n")
    with pytest.raises(UsageError, match="there is no option max-pages"):
        join.make_context("join", ["--config", str(config), "postgresql://db.test/x"])
