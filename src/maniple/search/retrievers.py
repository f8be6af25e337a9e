"""Retrievers of LangChain as search providers: a `BaseRetriever`, or what makes one, behind a name.

A retriever finds `Document`s, whose metadata hold the address and the title under keys that are not the same
everywhere. Its code belongs to somebody else: it runs in a thread, and everything that it raises is a failure
of the provider.
"""

import logging
from collections.abc import Mapping, Sequence
from itertools import islice
from typing import Any

from langchain_core.documents import Document
from langchain_core.retrievers import BaseRetriever
from pydantic import ValidationError

from maniple.errors import ConfigError
from maniple.search.provider import (
    DEFAULT_COOLDOWN_SECONDS,
    MAX_RESULTS,
    ProviderFailure,
    ProviderSpec,
    SearchHit,
    cooldown_from_headers,
    describe_mistakes,
    is_web_address,
    make_hit,
    normalize_query,
    rate_limited,
)
from maniple.text import describe_exception, shorten
from maniple.third_party import in_thread

ADDRESS_KEYS = ("url", "source", "link", "href", "entry id", "permalink")
"""The keys of metadata that may hold a document's address, the best first; case does not matter."""
TITLE_KEYS = ("title", "name")
SCORE_KEYS = ("score", "relevance_score")
_QUERY_CHARACTERS = 400
_REASON_CHARACTERS = 200
_log = logging.getLogger(__name__)


def retriever_spec(name: str, made: Any) -> ProviderSpec | None:
    """Return the provider `name` for a retriever, its class or a function that returns one; None for others.

    `search.options.<name>` are the arguments of the class or function.
    """
    if not isinstance(made, BaseRetriever) and not callable(made):
        return None

    def create(settings: Any, context: Any) -> RetrieverSearch:
        return RetrieverSearch(name, _make_retriever(name, made, settings.options.get(name, {})))

    return ProviderSpec(name=name, create=create, reads_options=True)


def _make_retriever(name: str, made: Any, options: Mapping[str, Any]) -> BaseRetriever:
    """Return the retriever; raises `ConfigError` with what to correct."""
    setting = f"search.options.{name}"
    if isinstance(made, BaseRetriever):
        if options:
            raise ConfigError(f"{setting}: this retriever is made already and takes none; remove them.")
        return made
    try:
        retriever = made(**options)
    except ValidationError as error:
        raise ConfigError(describe_mistakes(setting, error)) from error
    except (Exception, SystemExit) as error:  # third-party code may fail in any way
        raise ConfigError(
            f"search provider {name} cannot be made: {_reason(error)} Correct {setting}, or remove it from "
            "search.providers."
        ) from error
    if not isinstance(retriever, BaseRetriever):
        raise ConfigError(
            f"search provider {name}: it makes no BaseRetriever of LangChain and is no ProviderSpec."
        )
    return retriever


class RetrieverSearch:
    """Searches with a retriever of LangChain, each search in a thread of its own.

    Only the sync method of a retriever is used: an async one may block the event loop all the same. A search
    that is timed out keeps its thread until it ends.
    """

    def __init__(self, name: str, retriever: BaseRetriever) -> None:
        self._name = name
        self._retriever = retriever
        self._retrieve = in_thread(self._find_documents)

    async def search(self, query: str, *, limit: int) -> list[SearchHit]:
        """See `SearchProvider.search`. Documents without a web address are left out."""
        text = normalize_query(query, _QUERY_CHARACTERS)
        try:
            documents, hits = await self._retrieve(text)
        except Exception as error:  # third-party code may raise anything
            raise self._failure(error) from error
        self._report_missing(documents, len(hits))
        return hits[:limit]

    async def aclose(self) -> None:
        """Do nothing: a retriever has no end."""

    def _find_documents(self, query: str) -> tuple[list[Document], list[SearchHit]]:
        """Return the first documents and the results among them. Blocks, also while they are read."""
        # Without callbacks: the retriever's events are no part of the run's.
        found = self._retriever.invoke(query, config={"callbacks": []})
        documents = [one for one in islice(found, MAX_RESULTS) if isinstance(one, Document)]
        return documents, [hit for one in documents if (hit := _read_document(one)) is not None]

    def _failure(self, error: Exception) -> ProviderFailure:
        response = getattr(error, "response", None)
        if getattr(response, "status_code", None) == 429:
            seconds = cooldown_from_headers(getattr(response, "headers", None) or {})
            return rate_limited(self._name, 429, DEFAULT_COOLDOWN_SECONDS if seconds is None else seconds)
        return ProviderFailure(f"{self._name} failed: {_reason(error)}")

    def _report_missing(self, documents: Sequence[Document], hits: int) -> None:
        missing = len(documents) - hits
        if not missing:
            return
        reason = (
            f"{missing} of {len(documents)} documents of {self._name} have no web address in their metadata "
            f"({', '.join(ADDRESS_KEYS)})"
        )
        if not hits:
            first = shorten(documents[0].page_content[:_REASON_CHARACTERS], _REASON_CHARACTERS // 2)
            raise ProviderFailure(f"{reason}. The first: {first}", cooldown_seconds=0)
        _log.warning("%s; they are left out.", reason)


def _read_document(document: Document) -> SearchHit | None:
    """Return the document as a result; None for one without a web address."""
    metadata = {str(key).casefold(): value for key, value in document.metadata.items()}
    texts = {key: value.strip() for key, value in metadata.items() if isinstance(value, str)}
    url = next((texts[key] for key in ADDRESS_KEYS if is_web_address(texts.get(key, ""))), None)
    if url is None:
        return None
    title = next((texts[key] for key in TITLE_KEYS if texts.get(key)), "")
    scores = (metadata[key] for key in SCORE_KEYS if key in metadata)
    score = next((one for one in scores if isinstance(one, float) and 0 <= one <= 1), None)
    return make_hit(title, url, document.page_content, score)


def _reason(error: BaseException) -> str:
    """Return an error's type and the beginning of its text, in one line with a full stop."""
    return f"{describe_exception(error, _REASON_CHARACTERS).rstrip('.')}."
