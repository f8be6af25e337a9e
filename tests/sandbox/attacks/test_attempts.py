"""Each small attack by its name, in the real sandbox: none gets anything."""

import asyncio

import pytest

from tests.sandbox.attacks.targets import all_tried, names


@pytest.fixture(scope="module")
def outcomes(tmp_path_factory: pytest.TempPathFactory) -> dict[str, str]:
    return asyncio.run(all_tried(tmp_path_factory.mktemp("host")))


@pytest.mark.parametrize("name", names())
def test_an_attack_gets_nothing(outcomes: dict[str, str], name: str) -> None:
    # A system call that this machine has not is not tried.
    assert outcomes.get(name, "absent")
