"""Files and code: the workspaces of threads, and the sandbox."""

import asyncio
from functools import partial
from typing import ClassVar, Final

from maniple.agents.middleware.item_pictures import ItemPictureReader, PictureDescriber
from maniple.agents.middleware.tool_availability import HiddenTools
from maniple.agents.middleware.tool_results import ReadPicture, ResultPictures, figure_source
from maniple.agents.offers import Middleware, Offer, WorkerContext
from maniple.capabilities.base import Capability, CapabilityContext, UploadedFiles
from maniple.config import Settings
from maniple.config.secrets import secrets_of
from maniple.egress import AddressGuard, EgressRoute
from maniple.llms import ChatModels
from maniple.outgoing import OutgoingGuard
from maniple.reading.fork_server import ForkServer
from maniple.redaction import Redactor
from maniple.sandbox import Sandbox, open_sandbox
from maniple.sandbox.backends.local import WARNING as UNSAFE
from maniple.sandbox.package_environment import find_environment, list_installed_packages, package_name
from maniple.store.configured import storage_folder
from maniple.tools.code import CodeEnvironment, figure_reader
from maniple.tools.documents import WorkspaceDocuments, rendered_picture_reader
from maniple.tools.files import build_file_check, uploaded_files
from maniple.tools.item_search import ItemSearch
from maniple.tools.items import StoredResults, ThreadItems
from maniple.tools.made_files import MadeFiles
from maniple.tools.registry import load_tools
from maniple.workspace import Workspaces

_FOLDER: Final = "workspaces"
_ALWAYS_OFFERED = frozenset({"write_file"})
"""In an empty workspace there is nothing to read or to change, but a program can be written."""
_MAX_NAMED_HOSTS = 10
_MAX_NAMED_PACKAGES = 4
_NETWORK_PACKAGES = frozenset({"pip", "requests", "setuptools", "yfinance"})
"""The prepared packages that are useless without a network."""


def workspaces_of(settings: Settings) -> Workspaces:
    """Return the workspaces of threads, in a folder of their database; `settings` limit them. Blocks."""
    return Workspaces(
        storage_folder(settings, _FOLDER),
        max_bytes=settings.sandbox.workspace_bytes,
        copies=settings.sandbox.backend != "bubblewrap",
    )


def open_egress(settings: Settings, secrets: OutgoingGuard | None = None) -> EgressRoute:
    """Return the checked route of sandboxed programs to the network. Nothing is opened yet.

    `secrets` is the guard of the program; default: a new one with the secrets of the settings.
    """
    guard = AddressGuard(settings.fetch)
    secrets = secrets or OutgoingGuard(secrets_of(settings))
    return EgressRoute(guard.resolve, guard=secrets, proxies=guard.proxies)


class FilesCapability(Capability):
    """The workspaces of threads, whose files the team reads and writes."""

    name: ClassVar = "files"
    roles: ClassVar = ("file_manager",)
    provides: ClassVar = (
        *(Workspaces, StoredResults, ThreadItems, MadeFiles, UploadedFiles, WorkspaceDocuments),
        *(ItemPictureReader, ItemSearch),
    )

    async def open(self, context: CapabilityContext) -> Offer:
        settings = context.settings
        workspaces = await asyncio.to_thread(workspaces_of, settings)
        await asyncio.to_thread(workspaces.check_writable)
        documents = WorkspaceDocuments(context.require(ForkServer))
        describer = PictureDescriber(context.service(ChatModels))
        return Offer(
            services={
                Workspaces: workspaces,
                StoredResults: StoredResults(workspaces, context.require(Redactor), documents),
                ItemPictureReader: ItemPictureReader(
                    rendered_picture_reader(workspaces, documents), describer
                ),
                ThreadItems: ThreadItems(workspaces, context.require(Redactor)),
                ItemSearch: ItemSearch(workspaces, context.require(Redactor), documents),
                MadeFiles: MadeFiles(workspaces, context.require(Redactor)),
                UploadedFiles: UploadedFiles(uploaded_files(workspaces)),
                WorkspaceDocuments: documents,
            },
        )


class SandboxCapability(Capability):
    """Where the team's code runs."""

    name: ClassVar = "sandbox"
    provides: ClassVar = (Sandbox,)

    async def open(self, context: CapabilityContext) -> Offer:
        settings = context.settings
        opening = open_sandbox(
            settings.sandbox, cache_dir=settings.cache_dir, egress=context.require(EgressRoute)
        )
        return Offer(services={Sandbox: await context.stack.enter_async_context(opening)})


class CodeCapability(Capability):
    """Python and bash in the sandbox, beside the files of the workspace."""

    name: ClassVar = "code"
    roles: ClassVar = ("coder",)
    provides: ClassVar = (CodeEnvironment,)

    async def open(self, context: CapabilityContext) -> Offer:
        settings, workspaces = context.settings, context.require(Workspaces)
        context.require(Sandbox)
        figures = figure_reader(workspaces)
        packages = await asyncio.to_thread(packages_sentence, settings)
        unprepared = await asyncio.to_thread(describe_unprepared_packages, settings)
        network = network_sentence(settings)
        registry = await asyncio.to_thread(load_tools)
        files = set(registry.of_role("file_manager")) - _ALWAYS_OFFERED
        is_unsafe = settings.sandbox.backend == "unsafe-local"
        return Offer(
            services={CodeEnvironment: CodeEnvironment(packages, network)},
            middleware=[partial(_shown_figures, figures)],
            tool_filters=[partial(_file_filters, workspaces, files)],
            abilities={"coder": f"{packages} {network}".strip()},
            notices=tuple(filter(None, (UNSAFE if is_unsafe else "", unprepared))),
        )


def describe_unprepared_packages(settings: Settings) -> str:
    """Return the notice that the sandbox's packages are not prepared; "" where they are. Blocks on disk."""
    environment = find_environment(settings.sandbox, settings.cache_dir)
    if environment is None or list_installed_packages(settings.sandbox, settings.cache_dir):
        return ""
    names = ", ".join(package_name(one) for one in environment.requirements[:_MAX_NAMED_PACKAGES])
    return (
        f"The Python packages of the sandbox ({names}, …) are not prepared, so code has only the standard "
        "library. To prepare them: maniple doctor --packages (a minute, once)."
    )


def packages_sentence(settings: Settings) -> str:
    """Name the prepared packages for the coder's model, without versions. Blocks on disk.

    "" where they are unknown, because code runs on another machine or in a container. Those that need a
    network are only named if the sandbox has one, or if the settings name them.
    """
    installed = list_installed_packages(settings.sandbox, settings.cache_dir)
    names = [package.partition(" ")[0] for package in installed]
    if settings.sandbox.network == "none" and settings.sandbox.backend != "unsafe-local":
        useless = _NETWORK_PACKAGES - set(map(package_name, settings.sandbox.packages))
        names = [name for name in names if name not in useless]
    if not names and find_environment(settings.sandbox, settings.cache_dir) is not None:
        return "Only the standard library can be imported."
    return f"There are {', '.join(names)}." if names else ""


def network_sentence(settings: Settings) -> str:
    """Return the sentence about the network in the descriptions of the coder's tools.

    "" if it is unrestricted.
    """
    sandbox = settings.sandbox
    if sandbox.backend == "unsafe-local":
        return ""
    if sandbox.network == "none":
        return "No network."
    named = ", ".join(sandbox.allow_hosts[:_MAX_NAMED_HOSTS])
    more = " and others" if len(sandbox.allow_hosts) > _MAX_NAMED_HOSTS else ""
    return f"Of the network, only {named}{more}."


def _shown_figures(read: ReadPicture, worker: WorkerContext) -> list[Middleware]:
    return [ResultPictures(figure_source(read))] if worker.has_tool("python_repl_tool") else []


def _file_filters(workspaces: Workspaces, names: set[str], worker: WorkerContext) -> list[Middleware]:
    """Hide tools for files while the workspace is empty: each schema is part of every prompt."""
    if worker.name != "coder":
        return []
    return [HiddenTools(names, build_file_check(workspaces))]
