"""Ask an installed maniple one question of a scripted model; its Python runs this, outside of the clone.

python .ci/ask.py PROGRAM FOLDER
"""

import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
QUESTION, ANSWER = "Good morning", "Good morning to you."
SECONDS = 120


def main(program: str, folder: str) -> int:
    """Return 0 if the question is answered, else 1; what was written then goes to stderr."""
    # The scripted model is part of the tests; maniple itself comes from where it was installed.
    sys.path.insert(0, str(ROOT))
    from tests.environment import environment
    from tests.openai_server import reply, serving

    with serving({"coordinator": [reply(ANSWER)]}) as model:
        asked = subprocess.run(
            [program, "chat", QUESTION],
            cwd=folder,
            env=environment(model.base_url, folder),
            capture_output=True,
            text=True,
            timeout=SECONDS,
            check=False,
        )
    if asked.returncode == 0 and ANSWER in asked.stdout:
        return 0
    sys.stderr.write(f"{program} ended with {asked.returncode}.\n{asked.stdout}\n{asked.stderr}\n")
    return 1


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
