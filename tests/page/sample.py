"""Record the run that the start page plays: `python -m tests.page.sample`.

The service, its search of a folder, its sandbox, its events and the check of its claims are real; the answers
of the model were written by hand, for the files in `sample_notes`.
"""

import asyncio
import json
import tempfile
from pathlib import Path

from maniple.config.load import load_settings
from maniple.replay.player import load_player, title_of
from maniple.replay.sample import SAMPLE, SampleRun
from tests.api.in_process import InProcessService, open_service
from tests.openai_server import Json, call, reply, serving
from tests.team import plan, status, step

NOTES = Path(__file__).with_name("sample_notes")
MAX_BYTES = 60_000
QUESTION = (
    "Do Jupiter's moons obey the same law as the planets? Find the distances and periods in my notes, fit "
    "both, and draw a chart."
)
_PLANETS = "Find the distances and periods of the planets in the notes."
_MOONS = "Find the distances and periods of Jupiter's moons in the notes."
_STEPS = [
    {**step("researcher", "Read about the planets", _PLANETS), "needs": []},
    {**step("researcher", "Read about the moons", _MOONS), "needs": []},
    {**step("coder", "Fit and draw", "Fit each system and draw both in one chart."), "needs": [1, 2]},
    step("reporter", "Report", "Say whether it is the same law, with the chart."),
]
_CODE = """\
import matplotlib.pyplot as plt
import numpy as np

systems = {  # million km, days
    "planets of the Sun": {
        "Mercury": (57.9, 88.0), "Venus": (108.2, 224.7), "Earth": (149.6, 365.2),
        "Mars": (228.0, 687.0), "Jupiter": (778.5, 4331), "Saturn": (1432.0, 10747),
        "Uranus": (2867.0, 30589), "Neptune": (4515.0, 59800),
    },
    "moons of Jupiter": {
        "Io": (0.4218, 1.769), "Europa": (0.6711, 3.551),
        "Ganymede": (1.0704, 7.155), "Callisto": (1.8827, 16.689),
    },
}
fig, ax = plt.subplots(figsize=(6, 3.6))
constants = []
for name, bodies in systems.items():
    distance, period = np.array(list(bodies.values())).T
    slope, offset = np.polyfit(np.log10(distance), np.log10(period), 1)
    constant = np.median(period**2 / distance**3)
    constants.append(constant)
    print(f"{name}: exponent {slope:.3f}, T^2/a^3 = {constant:.4g} (days^2 per cubed million km)")
    ax.loglog(distance, period, "o", label=f"{name}: exponent {slope:.3f}")
    ax.loglog(distance, 10**offset * distance**slope, "-", color="gray", lw=0.8)
print(f"ratio of the constants: {constants[1] / constants[0]:.0f}")
ax.set_xlabel("distance (million km)")
ax.set_ylabel("period (days)")
ax.legend()
fig.tight_layout()
fig.savefig("orbits.png", dpi=70)
"""
_PLANETS_FOUND = """\
The notes have eight planets [1], distances in million km and periods in days:

| planet | distance | period |
|---|---:|---:|
| Mercury | 57.9 | 88.0 |
| Venus | 108.2 | 224.7 |
| Earth | 149.6 | 365.2 |
| Mars | 228.0 | 687.0 |
| Jupiter | 778.5 | 4331 |
| Saturn | 1432.0 | 10747 |
| Uranus | 2867.0 | 30589 |
| Neptune | 4515.0 | 59800 |
"""
_MOONS_FOUND = """\
The notes have four moons [2]. Their distances are in thousand km, a thousandth of the planets' unit:

| moon | distance | period |
|---|---:|---:|
| Io | 421.8 | 1.769 |
| Europa | 671.1 | 3.551 |
| Ganymede | 1070.4 | 7.155 |
| Callisto | 1882.7 | 16.689 |
"""
_FITTED = """\
Both exponents are 1.5 to within 0.003. The constants differ by a factor of 1049. The chart is orbits.png.
"""
_REPORT = """\
# One law for planets and moons

**Yes.** The fitted exponent is 1.498 for the planets and 1.500 for Jupiter's moons: in both systems the \
square of the period grows as the cube of the distance, $T^2 \\propto a^3$.

![Periods over distances, both axes logarithmic: two parallel lines](orbits.png)

| system | bodies | fitted exponent |
|---|---:|---:|
| planets of the Sun | 8 | 1.498 |
| moons of Jupiter | 4 | 1.500 |

The planets reach from Mercury, with a period of 88.0 days, to Neptune, with 59800 days [1]. Io takes 1.769 \
days and Callisto 16.689 days [2].

## What differs

The lines are parallel, and do not coincide: $T^2/a^3$ is 1049 times as large for the moons. The law has the \
same form around each centre, and its constant depends on the mass of the centre.

The notes give distances in different units, million km for the planets and thousand km for the moons; here \
both are in million km.
"""
_PACE: Json = {"delay_seconds": 0.03}
"""Between two words, so that a person can follow."""
_SCRIPT: Json = {
    "by_history": True,
    "coordinator": [call("handoff_to_planner")],
    "planner": [reply(json.dumps(plan(*_STEPS, title="One law for planets and moons?")), **_PACE)],
    "researcher": [
        {**call("tavily_search", query="planets distance from the Sun period days"), "about": _PLANETS},
        {**reply(_PLANETS_FOUND, **_PACE), "about": _PLANETS},
        {**call("tavily_search", query="moons of Jupiter distance period"), "about": _MOONS},
        {**reply(_MOONS_FOUND, **_PACE), "about": _MOONS},
    ],
    "coder": [call("python_repl_tool", code=_CODE), reply(_FITTED, **_PACE)],
    "reporter": [reply(_REPORT, **_PACE)],
}


async def record(home: Path) -> SampleRun:
    """Do the run with the sandbox of this machine, and return it."""
    with serving(_SCRIPT) as model:
        sections = {
            "models": {"basic": {"model": "written-by-hand", "base_url": model.base_url}},
            "sandbox": {},
            "search": {"providers": ["folder"], "folder": str(NOTES)},
            "cache_dir": str(load_settings().cache_dir),
        }
        async with open_service(model.base_url, home, **sections) as it:
            run = await it.run(messages=[{"role": "user", "content": QUESTION}])
            frames = await it.events_of(run["run_id"])
            if status(frames) != "completed":
                raise SystemExit(f"The run is {status(frames)}: {json.dumps(frames[-3:], indent=1)}")
            return await _cut_out(it, run["run_id"])


async def _cut_out(it: InProcessService, run_id: str) -> SampleRun:
    """Return the replay file of a run without its player, which is that of the installed version."""
    file = (await it.client.get(f"/api/runs/{run_id}/replay")).content
    begin, player = load_player().begin(title_of(QUESTION)), load_player()
    sets_math = file.endswith(player.end(sets_math=True))
    data = file.removeprefix(begin).removesuffix(player.end(sets_math=sets_math))
    return SampleRun(QUESTION, sets_math, data)


def main() -> None:
    with tempfile.TemporaryDirectory() as home:
        recorded = asyncio.run(record(Path(home)))
    packed = recorded.pack()
    if len(packed) > MAX_BYTES:
        raise SystemExit(f"The recording has {len(packed)} bytes, and {MAX_BYTES} at most.")
    SAMPLE.write_bytes(packed)
    print(f"{SAMPLE}: {len(packed):,} bytes")


if __name__ == "__main__":
    main()
