"""`maniple doctor`: check models, tools and folders."""

import asyncio
from pathlib import Path

from rich.console import Console

from maniple.cli.doctor.checks import (
    CheckResult,
    can_answer,
    check_browser,
    check_database,
    check_document_folder,
    check_engine,
    check_extensions,
    check_folders,
    check_mcp,
    check_model_file,
    check_network,
    check_notices,
    check_packages,
    check_page,
    check_papers,
    check_python,
    check_reading,
    check_sandbox,
    check_search,
    check_settings,
    findings_json,
    print_findings,
)
from maniple.cli.doctor.model_checks import (
    check_capabilities,
    check_embedding,
    check_endpoints,
    check_judge,
    check_local_model,
    configured_models,
    read_capabilities,
    show_learned,
)
from maniple.cli.doctor.repairs import ask_on_terminal, repair
from maniple.cli.render import Consoles
from maniple.cli.text import clean
from maniple.config import Settings


async def examine(config: Path | None, *, as_json: bool, probe: bool = False, build: bool = False) -> int:
    """Run all checks, print the findings to stdout, and return the exit status.

    `probe` also tests what the models can do, which costs calls; `build` installs missing packages of the
    sandbox first.
    """
    findings = [check_python()]
    finding, settings = check_settings(config)
    findings.append(finding)
    if settings is not None:
        findings += [*check_notices(settings), *await _check_all(settings, build=build)]
        if probe and can_answer(findings):
            findings += await _probe(settings)
    if as_json:
        print(findings_json(findings))
    else:
        print_findings(findings, Console())
    return 0 if can_answer(findings) else 1


async def fix(config: Path | None, *, consents: bool, can_ask: bool) -> int:
    """Install what is missing after the user's consent, then examine everything; return the exit status."""
    finding, settings = check_settings(config)
    if settings is None:
        print_findings([finding], Console())
        return 1
    is_done = await repair(settings, consents=consents, ask=ask_on_terminal if can_ask else None)
    status = await examine(config, as_json=False, build=consents or can_ask)
    return status if is_done else 1


async def prepare(config: Path | None) -> int:
    """Install and test only the packages of the sandbox; return 0 if all of them work."""
    finding, settings = check_settings(config)
    if settings is not None:
        finding = await _check_packages(settings, build=True)
    print(clean(" ".join(filter(None, (finding.detail, finding.remedy)))))
    return 0 if finding.status == "ok" else 1


async def _check_packages(settings: Settings, *, build: bool) -> CheckResult:
    progress = Consoles.of_this_process().progress()
    try:
        return await check_packages(settings, progress, build=build)
    finally:
        progress.close()


async def _probe(settings: Settings) -> list[CheckResult]:
    progress = Consoles.of_this_process().progress()
    try:
        return await check_capabilities(settings, progress)
    finally:
        progress.close()


async def _check_all(settings: Settings, *, build: bool) -> list[CheckResult]:
    models, sandbox, network, *others = await asyncio.gather(
        _check_models(settings),
        check_sandbox(settings),
        check_network(settings),
        _check_packages(settings, build=build),
        check_search(settings),
        check_browser(settings),
    )
    extensions = await asyncio.to_thread(check_extensions, settings)
    folders = await asyncio.to_thread(check_folders, settings)
    return [
        *models,
        sandbox,
        *network,
        *others,
        *await asyncio.to_thread(check_papers, settings),
        *extensions,
        check_reading(settings),
        check_page(),
        *await check_document_folder(settings),
        *await check_embedding(settings),
        *await check_mcp(settings),
        *await check_database(settings),
        *folders,
    ]


async def _check_models(settings: Settings) -> list[CheckResult]:
    """Check the model that would answer: an endpoint, else a local server, else the embedded model."""
    if configured_models(settings):
        cache = await asyncio.to_thread(read_capabilities, settings)
        learned, judge = show_learned(settings, cache), check_judge(settings, cache)
        found = [*await check_endpoints(settings), *learned, *([judge] if judge else [])]
        return [*found, *_check_embedded(settings, needed=False)]
    if settings.origin.skips_models:
        remedy = "If you know where its files come from, run: maniple trust"
        return [CheckResult("model", "problem", "the folder that names it is not trusted", remedy)]
    local = await check_local_model(settings)
    if local is not None:
        return [local, *_check_embedded(settings, needed=False)]
    if settings.embedded.enabled:
        return _check_embedded(settings, needed=True)
    remedy = (
        "Set BASIC_API_KEY, BASIC_MODEL and BASIC_BASE_URL in .env, or embedded.enabled: true in conf.yaml."
    )
    return [CheckResult("model", "problem", "none is configured, and the embedded one is turned off", remedy)]


def _check_embedded(settings: Settings, *, needed: bool) -> list[CheckResult]:
    return [check_engine(needed), check_model_file(settings, needed)]
