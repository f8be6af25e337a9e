"""`maniple doctor --probe`: what can the models do?"""

from maniple.cli.findings import Finding
from maniple.config import Settings
from maniple.errors import ManipleError
from maniple.llms.capabilities import Feature
from maniple.llms.embedded import Progress
from maniple.llms.probe import probe
from maniple.runtime.answering import open_models

_WITHOUT: dict[Feature, str] = {
    "stream_usage": "tokens are not counted",
    "tools": "tools are described in the prompt, and calls are read from the text",
    "json_schema": "plans are asked for by a tool call, as a JSON object or in text",
    "json_object": "plans are asked for in text and repaired",
    "vision": "pictures are left out",
}


async def check_capabilities(settings: Settings, progress: Progress) -> list[Finding]:
    """Ask the models that would answer five short questions each; what is found is remembered for a week."""
    findings = []
    try:
        async with open_models(settings, progress) as (models, _):
            for kind, model in models.by_type.items():
                async for found in probe(model):
                    name = f"models.{kind}: {found.feature}"
                    if found.works is None:
                        findings.append(Finding(name, "warning", f"not found out: {found.words}"))
                    elif found.works:
                        findings.append(Finding(name, "ok", "works"))
                    else:
                        findings.append(Finding(name, "warning", f"missing, so {_WITHOUT[found.feature]}"))
    except ManipleError as error:
        findings.append(Finding("models", "problem", str(error)))
    return findings
