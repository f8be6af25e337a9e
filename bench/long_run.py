"""What 1,000 runs leave behind in a server, and what one token costs."""

from collections.abc import Sequence

from bench.load import BARE, LEAN, TEAM, ServersUnderLoad, compare_cpu, servers_under_load
from bench.streams import SCRIPT, words
from tests.openai_server import BRIEF, reply

RUNS = 1_000
WARM_UP = 200
CONCURRENT = 8
TOKENS = (200, 2_200)
"""Of the reports whose difference is the cost of a token."""


async def measure(runs: int = RUNS, warm_up: int = WARM_UP) -> dict[str, float]:
    """Return by how much memory and descriptors grow, after some runs that fill caches and pools."""
    with servers_under_load(BRIEF, TEAM) as servers:
        await _ask(servers, warm_up)
        memory, descriptors = servers.memory_mb(TEAM), servers.descriptors(TEAM)
        await _ask(servers, runs)
        return {
            "runs_1000_growth_mb": round(servers.memory_mb(TEAM) - memory, 1),
            "runs_1000_growth_descriptors": servers.descriptors(TEAM) - descriptors,
            "runs_1000_memory_mb": round(servers.memory_mb(TEAM)),
        }


async def _ask(servers: ServersUnderLoad, runs: int) -> None:
    for _ in range(0, runs, CONCURRENT):
        await servers.load(TEAM, CONCURRENT)


async def measure_tokens(rounds: int = 7, tokens: Sequence[int] = TOKENS) -> dict[str, float]:
    """Return the CPU microseconds of a token, from runs that differ in the length of their reports only."""
    spent = []
    for number in tokens:
        with servers_under_load({**SCRIPT, "reporter": [reply(words(number))]}) as servers:
            spent.append(await compare_cpu(servers, 1, rounds))
    short, long = spent
    cost = {kind: 1000 * (long[kind] - short[kind]) / (tokens[1] - tokens[0]) for kind in short}
    return {
        "token_cpu_us": round(cost[TEAM], 1),
        "token_bare_cpu_us": round(cost[BARE], 1),
        "token_lean_cpu_us": round(cost[LEAN], 1),
        "token_cpu_of_bare": round(cost[TEAM] / cost[BARE], 2),
    }
