"""What one process learns of an endpoint, others use while they run."""

from pathlib import Path

import pytest

from maniple.agents import team_models
from maniple.agents.team_models import LineProgress, open_models
from maniple.config import ModelSettings, ModelsSettings, Settings
from maniple.config.settings import StoreSettings
from maniple.llms import capabilities_of
from tests.runs.workers import until

pytestmark = pytest.mark.anyio


@pytest.mark.parametrize("backend", ["sqlite", "postgres"])
async def test_a_feature_that_one_process_learns_is_soon_known_to_the_others(
    backend: str, request: pytest.FixtureRequest, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(team_models, "REFRESH_SECONDS", 0.02)
    url = request.getfixturevalue("postgres_url") if backend == "postgres" else None
    model = ModelSettings(model="m", base_url="http://127.0.0.1:9/v1")
    settings = Settings(
        data_dir=tmp_path / "data",
        cache_dir=tmp_path / "cache",
        models=ModelsSettings(basic=model),
        store=StoreSettings.model_validate({"backend": backend, "url": url}),
    )
    async with (
        open_models(settings, LineProgress()) as (one, _),
        open_models(settings, LineProgress()) as (other, _),
    ):
        learning, hearing = (capabilities_of(each.get("basic")) for each in (one, other))
        hearing.learn("vision", False)
        learning.learn("tools", False)

        async def know_both() -> bool:
            return hearing.known == learning.known == {"tools": False, "vision": False}

        await until(know_both, 20)
        assert (hearing.has("tools"), learning.has("vision")) == (False, False)
