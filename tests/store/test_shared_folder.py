"""Processes on one database that do not share their folder or settings are named when one starts."""

import logging
import os

import pytest

from maniple.cli.doctor.checks import check_database
from maniple.config import Settings
from maniple.config.digests import digest_sections
from maniple.store.artifact_files import ArtifactFiles
from maniple.store.postgres.shared_folder import FOLDER, SharedFolder
from maniple.store.postgres.store import open_postgres

pytestmark = pytest.mark.anyio


def opened(url, folder, **sections):
    shared = SharedFolder(folder, digest_sections(Settings.model_validate(sections)))
    return open_postgres(url, ArtifactFiles(folder / "artifacts"), server=False, pool=2, shared=shared)


async def test_a_process_with_another_folder_is_named_by_who_starts_and_one_with_the_same_is_not(
    postgres_url, tmp_path, caplog
):
    caplog.set_level(logging.WARNING, "maniple.store.postgres.shared_folder")
    here, elsewhere = tmp_path / "here", tmp_path / "elsewhere"
    async with opened(postgres_url, here) as first, opened(postgres_url, here) as second:
        assert caplog.records == []
        assert str(here) not in await first.probe()
        async with opened(postgres_url, elsewhere) as third:
            (said,) = caplog.records
            assert str(elsewhere) in said.getMessage()
            assert said.getMessage().count(f"pid {os.getpid()} on") == 2
            assert (await third.probe()).count(f"pid {os.getpid()} on") == 2
            assert (await second.probe()).count(f"pid {os.getpid()} on") == 1
            settings = Settings.model_validate(
                {"store": {"backend": "postgres", "url": postgres_url}, "data_dir": elsewhere}
            )
            found = [one.name for one in await check_database(settings) if one.status == "problem"]
            assert found == ["data_dir"]
        assert str(here) not in await first.probe()
    assert [*(here / FOLDER).iterdir()] == [*(elsewhere / FOLDER).iterdir()] == []


async def test_a_process_with_other_settings_is_named_with_their_sections(postgres_url, tmp_path, caplog):
    caplog.set_level(logging.WARNING, "maniple.store.postgres.shared_folder")
    own = {"server": {"port": 8001}, "runs": {"worker_concurrency": 3}}
    other = {"search": {"max_results": 9}, "runs": {"outage_seconds": 60}}
    async with opened(postgres_url, tmp_path) as first, opened(postgres_url, tmp_path, **own):
        # The port and the number of runs are for each process to choose.
        assert caplog.records == []
        async with opened(postgres_url, tmp_path, **other):
            (said,) = caplog.records
            assert said.getMessage().count("(runs, search)") == 2
            assert f"pid {os.getpid()} on" in await first.probe()
            settings = Settings.model_validate(
                {"store": {"backend": "postgres", "url": postgres_url}, "data_dir": tmp_path}
            )
            found = [one.name for one in await check_database(settings) if one.status == "problem"]
            assert found == ["settings"]


def test_a_secret_is_compared_only_by_whether_it_is_there():
    def digests(key):
        return digest_sections(Settings.model_validate({"models": {"basic": {"model": "m", "api_key": key}}}))

    assert digests("one") == digests("two") != digests(None)
