"""What a run may use up, what models cost, and how far a limit is used up."""

import asyncio
import logging
import math
import re
import time
from collections.abc import AsyncIterator, Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, fields, replace
from typing import Any, Protocol
from uuid import UUID

from langchain_core.callbacks import AsyncCallbackHandler, BaseCallbackHandler
from langchain_core.messages import AIMessage, BaseMessage
from langchain_core.outputs import ChatGeneration, LLMResult

from maniple.config import ModelsSettings
from maniple.errors import BudgetExhausted
from maniple.llms.context_windows import count_tokens
from maniple.store.records import RunUsage
from maniple.types import AGENT_MARK, UNSPOKEN

_DATE = re.compile(r"-\d{4}-?\d{2}-?\d{2}$")


@dataclass(frozen=True, slots=True)
class Budget:
    """The limits of one run; `None` is none. `cost` is in the currency of the prices."""

    tokens: int | None = None
    """Input and output together."""
    seconds: float | None = None
    """Of work: the time in which a run waits for people does not count."""
    model_calls: int | None = None
    tool_calls: int | None = None
    cost: float | None = None

    def within(self, ceiling: "Budget") -> "Budget":
        """Return this budget with no limit above that of `ceiling`."""
        both = {
            field.name: (getattr(self, field.name), getattr(ceiling, field.name)) for field in fields(self)
        }
        return Budget(
            **{
                name: min((one for one in pair if one is not None), default=None)
                for name, pair in both.items()
            }
        )


@dataclass(frozen=True, slots=True)
class Prices:
    """What a model costs, per million tokens, in any one currency."""

    input: float = 0.0
    output: float = 0.0

    def of(self, input_tokens: float, output_tokens: float) -> float:
        """Return what so many tokens cost."""
        return (input_tokens * self.input + output_tokens * self.output) / 1_000_000


def find_price(prices: Mapping[str, Prices], model: str) -> Prices | None:
    """Return what a model costs, by the name that its answer has: at times its own with a date behind it."""
    return prices.get(model) or prices.get(_DATE.sub("", model))


def load_prices(settings: ModelsSettings) -> dict[str, Prices]:
    """Return what the configured models and their fallbacks cost, by name; without a price they cost nothing.

    A name that stands there twice has the price that is named first.
    """
    prices: dict[str, Prices] = {}
    for one in settings.each():
        if one.has_price:
            prices.setdefault(one.model, Prices(one.price_input or 0.0, one.price_output or 0.0))
    return prices


@dataclass(frozen=True, slots=True)
class LimitUsage:
    """How far one limit is used up."""

    limit: str
    """The field of `Budget`."""
    allowed: float
    used: float
    next: float = 0
    """What the call that is asked for would add, as far as it can be known."""
    is_daily: bool = False
    """Whether it is a limit of the key's day, which all its runs share, and not one of the run."""

    @property
    def is_over(self) -> bool:
        """Whether the call would go beyond the limit."""
        return self.used >= self.allowed or self.used + self.next > self.allowed

    @property
    def left(self) -> float:
        """How much may still be used."""
        return max(self.allowed - self.used, 0)

    @property
    def whose(self) -> str:
        """Whose limit it is, in words."""
        return "the key's daily limit" if self.is_daily else "the run's budget"

    def __str__(self) -> str:
        more = f", and the next call needs about {self.next:.6g}" if self.used < self.allowed else ""
        return f"{self._name} is used up ({self.used:.6g} used{more})"

    @property
    def _name(self) -> str:
        is_cost = self.limit == "cost"
        amount = f"{self.allowed:.6g}" if is_cost else f"{self.allowed:.6g} {self.limit.replace('_', ' ')}"
        if self.is_daily:
            return f"{self.whose} of {amount}{' (cost)' if is_cost else ''}"
        return f"the {'cost' if is_cost else 'budget'} of {amount}"


class SharedLimits(Protocol):
    """Limits that a run has in common with others."""

    def levels(self, **coming: float) -> Iterable[LimitUsage]:
        """Yield how far all together, this run included, have used each up; see `levels`."""
        ...


LIMITS = tuple(field.name for field in fields(Budget))
"""What can be limited."""


def usage_of(used: RunUsage, limit: str) -> float:
    """Return how much is used of what a field of `Budget` limits."""
    return used.input_tokens + used.output_tokens if limit == "tokens" else getattr(used, limit)


def usage_by_limit(used: RunUsage) -> dict[str, float]:
    """Return what is used, by the field of `Budget` that limits it."""
    return {limit: usage_of(used, limit) for limit in LIMITS}


def iterate_limits(
    budget: Budget,
    used: Mapping[str, float],
    coming: Mapping[str, float],
    reserved: Mapping[str, float],
    *,
    is_daily: bool = False,
) -> Iterator[LimitUsage]:
    """Yield the level of each limit that is set; all amounts are by limit.

    `coming` are those that a call would add, `reserved` those that calls under way will use for certain.
    """
    for limit, so_far in used.items():
        allowed = getattr(budget, limit)
        # A call of one kind is no matter of the other kind's limit.
        if allowed is not None and (limit in coming or limit not in ("model_calls", "tool_calls")):
            added = coming[limit] + reserved.get(limit, 0) if limit in coming else 0
            yield LimitUsage(limit, allowed, so_far, added, is_daily)


NEAR = 0.8
"""The share of a limit from which on no new step is begun."""
MOST_TOKENS = 1_000_000_000
"""No call takes more, whatever its endpoint says."""
REPORT_SECONDS = 60.0
"""What a report may take at least, however late it is."""
_CALLBACK_LOGGER = "langchain_core.callbacks.manager"


@dataclass(frozen=True, slots=True)
class _Call:
    """A model call under way, with what it uses for certain: the estimated prompt."""

    model: str
    input_tokens: int
    cost: float
    is_reserve: bool


class UsageMeter:
    """The usage of one run, with what it had used before a restart; its seconds run from `start()`.

    `prices` are by the name of the model; `shared` are limits that bind the run beside its own. Checking and
    counting happen without giving way to another task, so parallel steps, and runs, go beyond a limit by no
    more than the answers of the calls already under way.
    """

    def __init__(
        self,
        budget: Budget | None = None,
        prices: Mapping[str, Prices] | None = None,
        used: RunUsage | None = None,
        *,
        shared: SharedLimits | None = None,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self.budget = budget or Budget()
        self._prices = prices or {}
        self._used = used or RunUsage()
        self._shared = shared
        self._shared_before: dict[str, float] = {}
        self._clock = clock
        self._began: float | None = None
        self._calls: dict[UUID, _Call] = {}
        self._reserve = 1
        self._exhausted: str | None = None

    def start(self) -> None:
        """Let the seconds run: the run begins to work. What it waited for before does not count."""
        if self._began is None:
            self._began = self._clock()
            self._shared_before = {
                level.limit: level.used for level in self._shared_levels(model_calls=0, tool_calls=0)
            }

    @property
    def used(self) -> RunUsage:
        """What the run has used so far."""
        worked = 0.0 if self._began is None else self._clock() - self._began
        return replace(self._used, seconds=self._used.seconds + worked)

    @property
    def counted(self) -> RunUsage:
        """The same without the seconds that run, at no expense."""
        return self._used

    @property
    def reserved(self) -> Mapping[str, float]:
        """What the model calls under way use for certain, by limit: their prompts."""
        calls = self._calls.values()
        return {
            "tokens": sum(call.input_tokens for call in calls),
            "cost": sum(call.cost for call in calls),
        }

    @property
    def exhausted(self) -> str | None:
        """Why the run ends as `budget_exhausted`: which limit took something from it. `None` if none did."""
        return self._exhausted

    @property
    def seconds_left(self) -> float:
        """How long the run may still work; infinite when nothing limits it."""
        return min((level.left for level in self._levels() if level.limit == "seconds"), default=math.inf)

    def near(self) -> str | None:
        """Say which limit is used up by four fifths or more, if one is.

        Of a shared limit that is four fifths of what was left of it when the run began to work.
        """
        for level in self._levels(model_calls=0, tool_calls=0):
            before = self._shared_before.get(level.limit, 0) if level.is_daily else 0
            if level.used - before >= NEAR * (level.allowed - before):
                unit = level.limit.replace("_", " ")
                return f"{level.used:.6g} of {level.allowed:.6g} ({unit}) of {level.whose} are used"
        return None

    def give_up(self, reason: str) -> None:
        """Note that the budget took something from the run; the first reason stays."""
        self._exhausted = self._exhausted or reason

    @asynccontextmanager
    async def in_time(self, *, reporting: bool = False) -> AsyncIterator[None]:
        """Cut what happens inside when the run's seconds are over: then `BudgetExhausted` is raised.

        A report has `REPORT_SECONDS` at least.
        """
        limited = [level for level in self._levels() if level.limit == "seconds"]
        if not limited:
            yield
            return
        tightest = min(limited, key=lambda level: level.left)
        left = max(tightest.left, REPORT_SECONDS if reporting else 0)
        deadline = asyncio.timeout(left)
        try:
            async with deadline:
                yield
        except TimeoutError as error:
            if not deadline.expired():
                raise
            used = max(tightest.allowed, tightest.used + left)
            raise self._refusal(replace(tightest, used=used)) from error

    @property
    def callbacks(self) -> list[BaseCallbackHandler]:
        """What a run's `config["callbacks"]` begin with."""
        logging.getLogger(_CALLBACK_LOGGER).addFilter(_is_news)  # once: a filter that is there stays alone
        return [ModelCallCounter(self), ToolCallCounter(self)]

    def begin(self, call_id: UUID, prompt: Sequence[BaseMessage], metadata: Mapping[str, Any]) -> None:
        """Count a model call, or raise `BudgetExhausted`."""
        model = str(metadata.get("ls_model_name") or "")
        tokens = count_tokens(prompt)
        cost = self._prices.get(model, Prices()).of(tokens, 0)
        over = self._over(model_calls=1, tokens=tokens, cost=cost)
        if over is not None:
            refusal = self._refusal(over)
            is_report = metadata.get(AGENT_MARK) == "reporter" and metadata.get("lc_source") not in UNSPOKEN
            if self._reserve == 0 or not is_report:
                raise refusal
            self._reserve -= 1
        self._calls[call_id] = _Call(model, tokens, cost, over is not None)
        self._add(model_calls=1)

    def end(self, call_id: UUID, answer: AIMessage | None) -> None:
        """Count the tokens of an answer."""
        if call := self._calls.pop(call_id, None):
            self._count(call, answer)

    def break_off(self, call_id: UUID, answer: AIMessage | None) -> None:
        """Count what came of a call that failed; one that was never answered costs nothing."""
        call = self._calls.pop(call_id, None)
        if call is None:
            return
        self._reserve += call.is_reserve
        if answer is not None and (answer.text or answer.tool_calls):
            self._count(call, answer)

    def use_tool(self) -> None:
        """Count a tool call, or raise `BudgetExhausted`."""
        self.check(tool_calls=1)
        self._add(tool_calls=1)

    def allows(self, **coming: float) -> bool:
        """Say whether amounts such as `tool_calls=1` stay within the limits; nothing is noted."""
        return self._over(**coming) is None

    def check(self, **coming: float) -> None:
        """Raise `BudgetExhausted` when amounts such as `tool_calls=1` would go beyond a limit."""
        if over := self._over(**coming):
            raise self._refusal(over)

    def _over(self, **coming: float) -> LimitUsage | None:
        return next((level for level in self._levels(**coming) if level.is_over), None)

    def _levels(self, **coming: float) -> Iterator[LimitUsage]:
        yield from iterate_limits(self.budget, usage_by_limit(self.used), coming, self.reserved)
        yield from self._shared_levels(**coming)

    def _shared_levels(self, **coming: float) -> Iterator[LimitUsage]:
        if self._shared is not None:
            yield from self._shared.levels(**coming)

    def _refusal(self, over: LimitUsage) -> BudgetExhausted:
        words = str(over)
        self.give_up(words)
        return BudgetExhausted(f"{words[0].upper()}{words[1:]}.", limit=over.limit)

    def _count(self, call: _Call, answer: AIMessage | None) -> None:
        usage = answer.usage_metadata if answer is not None else None
        if usage is not None:
            given, said = clamp_tokens(usage["input_tokens"]), clamp_tokens(usage["output_tokens"])
        else:
            given, said = call.input_tokens, count_tokens([answer]) if answer is not None else 0
        # A fallback may have answered: the answer names its model, though at times with a date.
        model = str(answer.response_metadata.get("model_name") or "") if answer is not None else ""
        prices = find_price(self._prices, model) or self._prices.get(call.model) or Prices()
        self._add(input_tokens=given, output_tokens=said, cost=prices.of(given, said))

    def _add(self, **amounts: Any) -> None:
        before = self._used
        self._used = replace(before, **{name: getattr(before, name) + n for name, n in amounts.items()})


class ModelCallCounter(AsyncCallbackHandler):
    """Tells a meter of model calls.

    Not inline: langchain-core 1.7 leaves the coroutines of all other handlers unawaited when an inline one
    raises at the start of a chat model.
    """

    raise_error = True

    def __init__(self, meter: UsageMeter) -> None:
        self._meter = meter

    async def on_chat_model_start(
        self,
        serialized: dict[str, Any],
        messages: list[list[BaseMessage]],
        *,
        run_id: UUID,
        metadata: dict[str, Any] | None = None,
        **kwargs: Any,
    ) -> None:
        self._meter.begin(run_id, messages[0], metadata or {})

    async def on_llm_end(self, response: LLMResult, *, run_id: UUID, **kwargs: Any) -> None:
        self._meter.end(run_id, _answer(response))

    async def on_llm_error(self, error: BaseException, *, run_id: UUID, **kwargs: Any) -> None:
        response = kwargs.get("response")
        self._meter.break_off(run_id, _answer(response) if isinstance(response, LLMResult) else None)


class ToolCallCounter(AsyncCallbackHandler):
    """Tells a meter of tool calls; inline and first, so that a refused call is told to nobody."""

    raise_error = True
    run_inline = True

    def __init__(self, meter: UsageMeter) -> None:
        self._meter = meter

    async def on_tool_start(self, serialized: dict[str, Any], input_str: str, **kwargs: Any) -> None:
        self._meter.use_tool()


def _is_news(record: logging.LogRecord) -> bool:
    """Say whether a warning tells more than that a call was refused, which is what the callbacks are for."""
    words = record.getMessage()
    ours = any(f"Error in {handler.__name__}." in words for handler in (ModelCallCounter, ToolCallCounter))
    return not (ours and BudgetExhausted.__name__ in words)


def clamp_tokens(tokens: int) -> int:
    """Return what an endpoint says that a call took, within what can be."""
    return min(max(tokens, 0), MOST_TOKENS)


def _answer(response: LLMResult) -> AIMessage | None:
    first = next((one for generations in response.generations for one in generations), None)
    message = first.message if isinstance(first, ChatGeneration) else None
    return message if isinstance(message, AIMessage) else None
