"""`maniple doctor`: is everything here that the team needs?"""

import asyncio
from pathlib import Path

from rich.console import Console

from maniple.cli.doctor import checks, model_checks
from maniple.cli.doctor.checks import (
    Finding,
    as_json_line,
    can_answer,
    check_mcp,
    check_network,
    check_own,
    check_packages,
    check_reading,
    print_findings,
)
from maniple.cli.doctor.model_checks import check_capabilities
from maniple.cli.render import Screens
from maniple.cli.text import clean
from maniple.config import Settings


async def examine(config: Path | None, *, as_json: bool, probe: bool = False, build: bool = False) -> int:
    """Look at everything, print what was found to stdout, and return the program's status.

    `probe` also asks the models what they can do, which costs calls; `build` first installs the packages
    that sandboxed code is to have, unless they are there.
    """
    findings = [checks.check_python()]
    finding, settings = checks.check_settings(config)
    findings.append(finding)
    if settings is not None:
        findings += [*checks.check_notices(settings), *await _check_all(settings, build=build)]
        if probe and can_answer(findings):
            findings += await _probe(settings)
    if as_json:
        print(as_json_line(findings))
    else:
        print_findings(findings, Console())
    return 0 if can_answer(findings) else 1


async def prepare(config: Path | None) -> int:
    """Install and try the packages of the sandbox, look at nothing else, and return 0 if all is well."""
    finding, settings = checks.check_settings(config)
    if settings is not None:
        finding = await _check_packages(settings, build=True)
    print(clean(" ".join(filter(None, (finding.detail, finding.remedy)))))
    return 0 if finding.status == "ok" else 1


async def _check_packages(settings: Settings, *, build: bool) -> Finding:
    progress = Screens.of_this_process().progress()
    try:
        return await check_packages(settings, progress, build=build)
    finally:
        progress.close()


async def _probe(settings: Settings) -> list[Finding]:
    progress = Screens.of_this_process().progress()
    try:
        return await check_capabilities(settings, progress)
    finally:
        progress.close()


async def _check_all(settings: Settings, *, build: bool) -> list[Finding]:
    models, sandbox, network, *others = await asyncio.gather(
        _check_models(settings),
        checks.check_sandbox(settings),
        check_network(settings),
        _check_packages(settings, build=build),
        checks.check_search(settings),
        checks.check_browser(settings),
    )
    own = await asyncio.to_thread(check_own, settings)
    folders = await asyncio.to_thread(checks.check_folders, settings)
    return [
        *models,
        sandbox,
        *network,
        *others,
        *own,
        check_reading(settings),
        *await check_mcp(settings),
        *folders,
    ]


async def _check_models(settings: Settings) -> list[Finding]:
    """Check the models in the order in which they are taken: an endpoint, a server here, the embedded one."""
    if model_checks.configured(settings):
        return [*await model_checks.check_endpoints(settings), *_check_embedded(settings, needed=False)]
    local = await model_checks.check_local_model(settings)
    if local is not None:
        return [local, *_check_embedded(settings, needed=False)]
    if settings.embedded.enabled:
        return _check_embedded(settings, needed=True)
    remedy = (
        "Set BASIC_API_KEY, BASIC_MODEL and BASIC_BASE_URL in .env, or embedded.enabled: true in conf.yaml."
    )
    return [Finding("model", "problem", "none is configured, and the embedded one is turned off", remedy)]


def _check_embedded(settings: Settings, *, needed: bool) -> list[Finding]:
    return [checks.check_engine(needed), checks.check_model_file(settings, needed)]
