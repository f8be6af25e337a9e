"""One invocation of the team's graph: its identity and the scope of its nodes."""

from collections.abc import Awaitable, Callable, Generator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass, replace
from itertools import takewhile
from typing import Any, Literal, cast
from uuid import uuid4

from langchain_core.callbacks import BaseCallbackHandler, BaseCallbackManager
from langchain_core.messages import BaseMessage
from langchain_core.runnables import RunnableConfig
from langchain_core.runnables.config import var_child_runnable_config
from langgraph.config import get_config
from langgraph.graph import END  # pyright: ignore[reportMissingTypeStubs] - it has types
from langgraph.runtime import Runtime
from langgraph.types import Command

from maniple.agents import as_ai_message
from maniple.errors import ConfigError
from maniple.graph.earlier_turns import fold_turns, fold_unanswered
from maniple.graph.outcome import close_invocation
from maniple.graph.sent_pictures import SentPictures
from maniple.graph.state import (
    PrivateState,
    RunOptions,
    State,
    is_users,
    merge_private,
    private_of,
    with_private,
)
from maniple.langgraph_internals import find_checkpointer, namespace_around, outermost_task
from maniple.llms.efforts import use_effort
from maniple.scope.call_ledgers import CheckpointLedger
from maniple.scope.context import SCOPE_KEY
from maniple.scope.registry import RunScopeRegistry
from maniple.scope.run_scope import RunScope
from maniple.store.records import RunUsage
from maniple.types import PRIVATE_CHANNEL, RUN_MARK, is_mapping

Node = Callable[[State, Runtime[Any]], Awaitable[Command[Any]]]

REENTRY = "coordinator"
"""The value of `next` when the coordinator continues a request instead of starting a new one."""


@dataclass(frozen=True, slots=True)
class InvocationNode:
    """A node of the team that runs in the scope of its run.

    The first node of an invocation chooses the ids of thread and run; later nodes read them from the state.
    Every node passes them to its agents and tools in the scope, in `configurable`.
    """

    node: Node
    scopes: RunScopeRegistry
    is_first: bool = False
    """Whether an invocation can start with this node."""
    message_type: Literal["ai", "human"] = "ai"
    """The type of the messages with plans, results and reports."""
    pictures: SentPictures | None = None
    """Makes the pictures that the user sends in messages items of the thread."""

    async def __call__(self, state: State, runtime: Runtime[Any]) -> Command[Any]:
        private, config = private_of(state), get_config()
        if is_new := self.is_first and private.get("next") != REENTRY:
            _check_question(state)
            private = merge_private(private, {"run_id": "", "usage": {}})
        thread_id, given = _choose_thread(config, private), config.get("configurable", {}).get(SCOPE_KEY)
        can_pause, options = find_checkpointer(config) is not None, RunOptions.of(runtime, state)
        if isinstance(given, RunScope):
            scope = replace(given, thread_id=thread_id, can_pause=can_pause and given.can_pause)
            _check_answerable(scope, options)
            identity: PrivateState = {"thread_id": thread_id, "run_id": given.run_id}
            if is_new and (folded := await fold_turns(state, given)):
                state = with_private(state, **folded)
                identity = {**identity, **folded}
            with enter_scope(config, scope), use_effort(options.effort, scope.effortless_models):
                command = await self._run(state, runtime)
            return _with_identity(command, identity)
        unanswered = fold_unanswered(state) if is_new else PrivateState()
        state = with_private(state, **unanswered)
        run_id = private.get("run_id") or _choose_run(config)
        used = RunUsage(**private.get("usage", {}))
        with self.scopes.enter(run_id, thread_id, used, _open_ledger(config, run_id)) as own:
            scope = replace(own, can_pause=can_pause)
            _check_answerable(scope, options)
            effort = use_effort(options.effort, scope.effortless_models)
            with enter_scope(config, scope, scope.callbacks), effort:
                command = await self._run(state, runtime)
            used = scope.meter.used if scope.meter is not None else RunUsage()
            if command.goto == END:
                self.scopes.end(run_id)
                if RUN_MARK not in config.get("metadata", {}):
                    exhausted = self.scopes.exhausted(run_id) is not None
                    command = close_invocation(state, command, used, exhausted=exhausted)
            usage = asdict(used)
        ids: PrivateState = {"thread_id": thread_id, "run_id": run_id, "usage": usage}
        return _with_identity(command, merge_private(unanswered, ids))

    async def _run(self, state: State, runtime: Runtime[Any]) -> Command[Any]:
        if self.is_first and self.pictures is not None and private_of(state).get("next") != REENTRY:
            stored = await self.pictures.store(state, _new_messages(state))
            state = with_private(state, **stored)
            command = _with_identity(await self._call_node(state, runtime), stored)
        else:
            command = await self._call_node(state, runtime)
        update = cast("Mapping[str, Any]", command.update or {})
        if self.message_type == "human" or "messages" not in update:
            return command
        return replace(command, update={**update, "messages": [*map(as_ai_message, update["messages"])]})

    async def _call_node(self, state: State, runtime: Runtime[Any]) -> Command[Any]:
        if self.pictures is not None:
            state = await self.pictures.show(state)
        return await self.node(state, runtime)


@contextmanager
def enter_scope(
    config: RunnableConfig,
    scope: RunScope,
    handlers: Sequence[BaseCallbackHandler] = (),
    metadata: Mapping[str, Any] | None = None,
) -> Generator[None]:
    """Set the config of this context to `config` with the scope, the handlers and the metadata added."""
    # A bare `{"configurable": …}` would replace LangGraph's own keys, and with them its checkpoints.
    inner: RunnableConfig = {
        **config,
        "configurable": {**config.get("configurable", {}), SCOPE_KEY: scope},
        "callbacks": _with_handlers(config.get("callbacks"), handlers),
        "metadata": {**config.get("metadata", {}), **(metadata or {})},
    }
    token = var_child_runnable_config.set(inner)
    try:
        yield
    finally:
        var_child_runnable_config.reset(token)


def _open_ledger(config: RunnableConfig, run_id: str) -> CheckpointLedger | None:
    """Return the record of the run's tool calls where the run is resumed from; None if it cannot be."""
    saver, thread_id = find_checkpointer(config), config.get("configurable", {}).get("thread_id")
    return CheckpointLedger(saver, str(thread_id), run_id) if saver is not None and thread_id else None


def _check_answerable(scope: RunScope, options: RunOptions) -> None:
    """Raise `ConfigError` if the run may have to wait for an answer but cannot be resumed.

    This cannot be checked when the graph is compiled, because a parent's checkpointer is inherited later.
    """
    if scope.can_pause or not (scope.approval or not options.auto_accepted_plan):
        return
    what = (
        "runs.approval is set" if scope.approval else "The plan is to be reviewed (auto_accepted_plan=False)"
    )
    raise ConfigError(
        f"{what}, but without a checkpointer no run can wait for an answer. Pass one to "
        "open_team(checkpointer=…), or compile the graph that contains the team with one."
    )


def _new_messages(state: State) -> Sequence[BaseMessage]:
    """Return the user's messages whose pictures may not be items of the thread yet."""
    messages = state["messages"]
    if not private_of(state).get("thread_id"):
        return [one for one in messages if is_users(one)]  # the caller may have sent a history
    return list(takewhile(is_users, reversed(messages)))[::-1]


def _check_question(state: State) -> None:
    """Raise `ConfigError` if there is nothing to answer, before any model is asked."""
    asked = [one for one in state["messages"] if is_users(one)]
    # Earlier messages of the thread are answered already.
    if not asked or not _has_content(asked[-1]):
        raise ConfigError(
            'The team was given no question. Invoke it with {"messages": [HumanMessage("…")]}; a graph '
            "around it must have the channel `messages`."
        )


def _has_content(message: BaseMessage) -> bool:
    if message.text.strip():
        return True
    parts = message.content if isinstance(message.content, list) else []
    return any(is_mapping(one) and one.get("type") != "text" for one in parts)  # a picture or a file


def _choose_thread(config: RunnableConfig, private: Mapping[str, Any]) -> str:
    given = config.get("configurable", {})
    outer = getattr(given.get(SCOPE_KEY), "thread_id", "")  # of the run of a team whose tool this team is
    named = outer or given.get("thread_id") or private.get("thread_id") or _nesting_task(given)
    return str(named or uuid4())


def _choose_run(config: RunnableConfig) -> str:
    given = config.get("configurable", {})
    # Without a parent each invocation is new. In a parent, the run stays the same when the parent retries.
    return str(config.get("metadata", {}).get(RUN_MARK) or namespace_around(given) or uuid4())


def _nesting_task(given: Mapping[str, Any]) -> str:
    """Return the task of the outermost graph around this one; "" if this is the outermost graph."""
    return outermost_task(given) if namespace_around(given) else ""


def _with_handlers(callbacks: Any, handlers: Sequence[BaseCallbackHandler]) -> Any:
    """Return `callbacks` with the handlers first, so that a call that one of them refuses is not reported."""
    if not handlers:
        return callbacks
    if not isinstance(callbacks, BaseCallbackManager):
        return [*handlers, *(callbacks or [])]
    manager = callbacks.copy()
    manager.handlers = [*handlers, *manager.handlers]
    manager.inheritable_handlers = [*handlers, *manager.inheritable_handlers]
    return manager


def _with_identity(command: Command[Any], identity: PrivateState) -> Command[Any]:
    update = cast("Mapping[str, Any]", command.update or {})
    private = {**identity, **update.get(PRIVATE_CHANNEL, {})}
    return replace(command, update={**update, PRIVATE_CHANNEL: private})
