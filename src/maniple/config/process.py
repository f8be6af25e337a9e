"""What this process found in its environment that is no setting of ours."""

import os


def surroundings(*names: str) -> dict[str, str]:
    """Return the variables of these names that are set, for a program that is started."""
    return {name: os.environ[name] for name in names if name in os.environ}
