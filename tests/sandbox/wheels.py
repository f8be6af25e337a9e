"""Packages for tests: wheels made on the spot, which the real pip installs without a network."""

import os
import zipfile
from pathlib import Path

import pytest

_SCRIPT = "import sys\nVERSION = '{version}'\ndef main():\n    print('{name}', sys.executable)\n"


def write_wheel(folder: Path, name: str, version: str = "1.0", source: str = _SCRIPT) -> Path:
    """A package of one module, with a script of the same name that runs its `main`."""
    info = f"{name}-{version}.dist-info"
    files = {
        f"{name}.py": source.format(name=name, version=version) if source is _SCRIPT else source,
        f"{info}/METADATA": f"Metadata-Version: 2.1\nName: {name}\nVersion: {version}\n",
        f"{info}/WHEEL": "Wheel-Version: 1.0\nGenerator: tests\nRoot-Is-Purelib: true\nTag: py3-none-any\n",
        f"{info}/entry_points.txt": f"[console_scripts]\n{name} = {name}:main\n",
    }
    record = "".join(f"{path},,\n" for path in (*files, f"{info}/RECORD"))
    path = folder / f"{name}-{version}-py3-none-any.whl"
    with zipfile.ZipFile(path, "w") as wheel:
        for member, content in {**files, f"{info}/RECORD": record}.items():
            wheel.writestr(member, content)
    return path


def offline_index(folder: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder for wheels, which is all that pip knows from now on."""
    wheels = folder / "wheels"
    wheels.mkdir()
    monkeypatch.setenv("PIP_NO_INDEX", "1")
    monkeypatch.setenv("PIP_FIND_LINKS", str(wheels))
    monkeypatch.setenv("PIP_CONFIG_FILE", os.devnull)
    return wheels
