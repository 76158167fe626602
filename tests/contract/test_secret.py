"""The secret that a crawl's ids are keyed with, in every frontier."""

from __future__ import annotations

import asyncio

import pytest

from rove.config import Settings
from rove.errors import FrontierError
from rove.frontier.backends import form_of
from rove.urls.keyed_hash import SECRET_BYTES
from tests.contract.harness import Harness

SETTINGS = Settings(email="me@crawler.test")


async def test_it_is_made_with_the_settings_and_stays(harness: Harness) -> None:
    await harness.open()
    with pytest.raises(FrontierError, match="secret"):
        await harness.catalog().secret()
    await harness.catalog().save(SETTINGS.to_json(), None)
    secret = await harness.catalog().secret()
    assert len(secret) == SECRET_BYTES and len(set(secret)) > 4
    await harness.catalog().save(Settings(email="you@crawler.test").to_json(), None)
    assert await harness.catalog().secret() == secret


async def test_every_machine_and_every_reader_has_the_same_ids(harness: Harness) -> None:
    await harness.open()
    catalogs = [harness.catalog() for _ in range(3)]
    await asyncio.gather(*(catalog.save(SETTINGS.to_json(), None) for catalog in catalogs))
    other = await harness.backend()
    forms = [await form_of(catalog, SETTINGS) for catalog in (*catalogs, other.catalog)]
    assert len({form.canonical("http://a.test/x") for form in forms}) == 1


async def test_the_settings_do_not_hold_it(harness: Harness) -> None:
    await harness.open()
    await harness.catalog().save(SETTINGS.to_json(), None)
    secret, settings = await harness.catalog().secret(), await harness.catalog().settings()
    assert settings is not None and secret.hex() not in settings


@pytest.mark.parametrize("damaged", ["", "zz" * 16, "ab" * 15])
async def test_a_damaged_one_is_refused_and_not_shown(harness: Harness, damaged: str) -> None:
    await harness.open()
    await harness.catalog().save(SETTINGS.to_json(), None)
    await harness.statement(f"UPDATE meta SET value = '{damaged}' WHERE key = 'secret'")
    with pytest.raises(FrontierError, match="restore the database from a backup") as raised:
        await harness.catalog().secret()
    assert not damaged or damaged not in str(raised.value)
