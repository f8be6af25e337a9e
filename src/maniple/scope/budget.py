"""Budgets of runs, prices of models, and the meter that counts a run's usage."""

import asyncio
import logging
import math
import re
import time
from collections.abc import AsyncGenerator, Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, fields, replace
from typing import Any, Protocol
from uuid import UUID

from langchain_core.callbacks import AsyncCallbackHandler, BaseCallbackHandler
from langchain_core.messages import AIMessage, BaseMessage
from langchain_core.messages.ai import UsageMetadata
from langchain_core.outputs import ChatGeneration, LLMResult

from maniple.config import ModelsSettings
from maniple.errors import BudgetExhausted
from maniple.llms.context_windows import BYTES_PER_TOKEN, count_tokens
from maniple.store.records import RunUsage
from maniple.types import AGENT_MARK, UNSPOKEN

_DATE = re.compile(r"-\d{4}-?\d{2}-?\d{2}$")


@dataclass(frozen=True, slots=True)
class Budget:
    """The limits of one run; `None` means unlimited. `cost` is in the currency of the prices."""

    tokens: int | None = None
    """Input and output tokens together."""
    seconds: float | None = None
    """Working time. Time that a run waits for people does not count."""
    model_calls: int | None = None
    tool_calls: int | None = None
    cost: float | None = None

    def within(self, ceiling: "Budget") -> "Budget":
        """Return this budget with each limit lowered to that of `ceiling` if it is higher."""
        both = {
            field.name: (getattr(self, field.name), getattr(ceiling, field.name)) for field in fields(self)
        }
        return Budget(
            **{
                name: min((one for one in pair if one is not None), default=None)
                for name, pair in both.items()
            }
        )

    def extended(self, used: RunUsage) -> "Budget":
        """Return the budget with which a run that has used this much can use all of this budget again."""
        amounts = {
            "tokens": used.input_tokens + used.output_tokens,
            "seconds": used.seconds,
            "model_calls": used.model_calls,
            "tool_calls": used.tool_calls,
            "cost": used.cost,
        }
        limits = {name: getattr(self, name) for name in amounts}
        return Budget(
            **{name: None if limit is None else limit + amounts[name] for name, limit in limits.items()}
        )


@dataclass(frozen=True, slots=True)
class Prices:
    """The prices of a model per million tokens, in any one currency."""

    input: float = 0.0
    output: float = 0.0
    cached: float | None = None
    """Of the part of the prompt that was in the endpoint's cache; by default the price of the others."""

    def of(self, input_tokens: float, output_tokens: float, cached_tokens: float = 0) -> float:
        """Return the cost of these numbers of tokens; the cached ones are among those of the input."""
        cached = self.input if self.cached is None else self.cached
        read = (input_tokens - cached_tokens) * self.input + cached_tokens * cached
        return (read + output_tokens * self.output) / 1_000_000


def find_price(prices: Mapping[str, Prices], model: str) -> Prices | None:
    """Return the prices of a model by the name in its answer, which may have a date appended."""
    return prices.get(model) or prices.get(_DATE.sub("", model))


def load_prices(settings: ModelsSettings) -> dict[str, Prices]:
    """Return the prices of the configured models and their fallbacks, by name.

    Models without a price are left out. If a name is configured twice, the first price counts.
    """
    prices: dict[str, Prices] = {}
    for one in settings.each():
        if one.has_price:
            price = Prices(one.price_input or 0.0, one.price_output or 0.0, one.price_cached)
            prices.setdefault(one.model, price)
    return prices


@dataclass(frozen=True, slots=True)
class LimitUsage:
    """The usage of one limit."""

    limit: str
    """The field of `Budget`."""
    allowed: float
    used: float
    next: float = 0
    """The amount that the requested call would add, as far as it is known."""
    is_daily: bool = False
    """Whether it is the daily limit of the API key, which all runs of the key share, or one of the run."""

    @property
    def is_over(self) -> bool:
        """Whether the call would exceed the limit."""
        return self.used >= self.allowed or self.used + self.next > self.allowed

    @property
    def left(self) -> float:
        """The amount that may still be used."""
        return max(self.allowed - self.used, 0)

    @property
    def owner(self) -> str:
        """The owner of the limit, for messages."""
        return "the key's daily limit" if self.is_daily else "the run's budget"

    def __str__(self) -> str:
        more = f", and the next call needs about {self.next:.6g}" if self.used < self.allowed else ""
        return f"{self._name} is used up ({self.used:.6g} used{more})"

    @property
    def _name(self) -> str:
        is_cost = self.limit == "cost"
        amount = f"{self.allowed:.6g}" if is_cost else f"{self.allowed:.6g} {self.limit.replace('_', ' ')}"
        if self.is_daily:
            return f"{self.owner} of {amount}{' (cost)' if is_cost else ''}"
        return f"the {'cost' if is_cost else 'budget'} of {amount}"


class SharedLimits(Protocol):
    """Limits that several runs share."""

    def levels(self, **coming: float) -> Iterable[LimitUsage]:
        """Yield the usage of each limit by all runs together, this one included; see `iterate_limits`."""
        ...


LIMITS = tuple(field.name for field in fields(Budget))
"""The names of the limits."""


def usage_of(used: RunUsage, limit: str) -> float:
    """Return the used amount of what the field `limit` of `Budget` limits."""
    return used.input_tokens + used.output_tokens if limit == "tokens" else getattr(used, limit)


def usage_by_limit(used: RunUsage) -> dict[str, float]:
    """Return the used amounts by the field of `Budget` that limits them."""
    return {limit: usage_of(used, limit) for limit in LIMITS}


def iterate_limits(
    budget: Budget,
    used: Mapping[str, float],
    coming: Mapping[str, float],
    reserved: Mapping[str, float],
    *,
    is_daily: bool = False,
) -> Iterator[LimitUsage]:
    """Yield the usage of each limit that is set. All amounts are by limit.

    `coming` are the amounts that a call would add. `reserved` are the amounts that running calls will
    certainly use.
    """
    for limit, so_far in used.items():
        allowed = getattr(budget, limit)
        # The limit of tool calls does not concern a model call, nor the other way round.
        if allowed is not None and (limit in coming or limit not in ("model_calls", "tool_calls")):
            added = coming[limit] + reserved.get(limit, 0) if limit in coming else 0
            yield LimitUsage(limit, allowed, so_far, added, is_daily)


def _reschedule(deadline: asyncio.Timeout, end: float | None) -> None:
    if not deadline.expired():
        deadline.reschedule(end)


NEAR = 0.8
"""The used share of a limit from which on no new step begins."""
MAX_TOKENS = 1_000_000_000
"""The largest accepted token count of a call; larger counts from an endpoint are invalid."""
REPORT_SECONDS = 60.0
"""The time that a report always gets, even if the run's time is used up, up to its share of it."""
REPORT_SHARE = 0.25
REPORT_TOKENS = 8_000
"""The length that a report may always have, even if the run's tokens or its cost are used up."""
_UNCHECKED_BYTES = 2_000
"""An answer that is being written is compared with the limits each time it has grown by as much."""
_CALLBACK_LOGGER = "langchain_core.callbacks.manager"


@dataclass(slots=True)
class _Call:
    """A running model call, with the amounts that it certainly uses: those of the estimated prompt."""

    model: str
    input_tokens: int
    cost: float
    is_reserve: bool
    is_report: bool
    received_bytes: int = 0
    """The size of the answer so far."""
    checked_bytes: int = 0

    @property
    def received_tokens(self) -> int:
        """The estimated tokens of the answer so far."""
        return self.received_bytes // BYTES_PER_TOKEN


class UsageMeter:
    """Counts the usage of one run, including the usage before a restart; time counts from `start()`.

    `prices` are by model name. `shared` are limits that apply in addition to the run's own. Checking and
    counting happen without an `await` in between. Parallel steps and runs exceed a limit by at most the
    answers of the running calls. Each such answer is cut off where it alone would exceed the limit.
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
        self._deadlines: dict[asyncio.Timeout, float] = {}
        """The time limits of what is at work, with the seconds that were left when the clock was stopped."""
        self._calls: dict[UUID, _Call] = {}
        self._reserve = 1
        self._exhausted: str | None = None

    def start(self) -> None:
        """Start the clock: the run begins to work. Earlier waiting time does not count."""
        if self._began is None:
            self._began = self._clock()
            for deadline, left in self._deadlines.items():
                _reschedule(deadline, asyncio.get_running_loop().time() + left)
            self._shared_before = {
                level.limit: level.used for level in self._shared_levels(model_calls=0, tool_calls=0)
            }

    @property
    def is_running(self) -> bool:
        """Whether the clock runs."""
        return self._began is not None

    def stop(self) -> None:
        """Let the seconds stand until the next `start()`: nothing of the run is at work."""
        self._used, self._began = self.used, None
        for deadline in self._deadlines:
            if (end := deadline.when()) is not None:
                self._deadlines[deadline] = end - asyncio.get_running_loop().time()
                _reschedule(deadline, None)

    @property
    def used(self) -> RunUsage:
        """The usage of the run so far."""
        worked = 0.0 if self._began is None else self._clock() - self._began
        return replace(self._used, seconds=self._used.seconds + worked)

    @property
    def answered(self) -> RunUsage:
        """The usage of the run so far, without the model calls that have not been answered."""
        used = self.used
        return replace(used, model_calls=used.model_calls - len(self._calls))

    @property
    def usage_without_time(self) -> RunUsage:
        """The usage without the time since `start()`; cheaper to compute than `used`."""
        return self._used

    @property
    def reserved(self) -> Mapping[str, float]:
        """The amounts that running model calls certainly use, by limit: those of their prompts."""
        calls = self._calls.values()
        return {
            "tokens": sum(call.input_tokens for call in calls),
            "cost": sum(call.cost for call in calls),
        }

    @property
    def exhausted(self) -> str | None:
        """The limit that cut the run's work, so that it ends as `budget_exhausted`; `None` if none did."""
        return self._exhausted

    @property
    def seconds_left(self) -> float:
        """The remaining working time; infinite without a limit."""
        return min(
            (level.left for level in self._limit_usages() if level.limit == "seconds"), default=math.inf
        )

    def describe_near_limit(self, share: float = NEAR) -> str | None:
        """Return a description of a limit that is used up to `share` or more; None if there is none.

        For a shared limit, the share is that of what was left when the run began to work.
        """
        for level in self._limit_usages(model_calls=0, tool_calls=0):
            before = self._shared_before.get(level.limit, 0) if level.is_daily else 0
            if level.used - before >= share * (level.allowed - before):
                unit = level.limit.replace("_", " ")
                return f"{level.used:.6g} of {level.allowed:.6g} ({unit}) of {level.owner} are used"
        return None

    def describe_left(self) -> str:
        """Return what may still be used of each limit, for a prompt; "" without limits."""
        left: dict[str, float] = {}
        for level in self._limit_usages(model_calls=0, tool_calls=0):
            left[level.limit] = min(level.left, left.get(level.limit, math.inf))
        return ", ".join(_format_amount(limit, amount) for limit, amount in left.items())

    def mark_exhausted(self, reason: str) -> None:
        """Record that the budget cut the run's work. Only the first reason is stored."""
        self._exhausted = self._exhausted or reason

    @asynccontextmanager
    async def enforce_time_limit(self, *, reporting: bool = False) -> AsyncGenerator[None]:
        """Cancel the body when the run's time is used up, and raise `BudgetExhausted`.

        A report (`reporting`) gets at least `REPORT_SHARE` of the allowed time, up to `REPORT_SECONDS`.
        """
        limited = [level for level in self._limit_usages() if level.limit == "seconds"]
        if not limited:
            yield
            return
        tightest = min(limited, key=lambda level: level.left)
        reserve = min(REPORT_SECONDS, REPORT_SHARE * tightest.allowed) if reporting else 0
        left = max(tightest.left, reserve)
        deadline = asyncio.timeout(left)
        try:
            async with deadline:
                self._deadlines[deadline] = left
                yield
        except TimeoutError as error:
            if not deadline.expired():
                raise
            used = max(tightest.allowed, tightest.used + left)
            raise self._refusal(replace(tightest, used=used)) from error
        finally:
            self._deadlines.pop(deadline, None)

    @property
    def callbacks(self) -> list[BaseCallbackHandler]:
        """The callbacks that must come first in a run's `config["callbacks"]`."""
        logging.getLogger(_CALLBACK_LOGGER).addFilter(_is_not_refusal)  # adding it again has no effect
        return [ModelCallCounter(self), ToolCallCounter(self)]

    def begin(self, call_id: UUID, prompt: Sequence[BaseMessage], metadata: Mapping[str, Any]) -> None:
        """Count a model call until it fails, or raise `BudgetExhausted`."""
        model = str(metadata.get("ls_model_name") or "")
        tokens = count_tokens(prompt)
        cost = self._prices.get(model, Prices()).of(tokens, 0)
        over = self._find_exceeded(model_calls=1, tokens=tokens, cost=cost)
        is_report = metadata.get(AGENT_MARK) == "reporter" and metadata.get("lc_source") not in UNSPOKEN
        if over is not None:
            refusal = self._refusal(over)
            if self._reserve == 0 or not is_report:
                raise refusal
            self._reserve -= 1
        self._calls[call_id] = _Call(model, tokens, cost, over is not None, is_report)
        self._add(model_calls=1)

    def receive(self, call_id: UUID, size: int) -> None:
        """Count `size` bytes of an answer that is being written, or raise `BudgetExhausted` at a limit.

        The tokens are estimated; the answer's end or failure counts them.
        """
        call = self._calls.get(call_id)
        if call is None:
            return
        call.received_bytes += size
        if call.received_bytes - call.checked_bytes < _UNCHECKED_BYTES:
            return
        call.checked_bytes, tokens = call.received_bytes, call.received_tokens
        if call.is_report and tokens < REPORT_TOKENS:
            return
        coming = {"tokens": tokens, "cost": self._prices.get(call.model, Prices()).of(0, tokens)}
        for level in self._limit_usages(**coming):
            if level.limit in coming and level.is_over:
                raise self._refusal(replace(level, used=level.used + level.next))

    def end(self, call_id: UUID, answer: AIMessage | None) -> None:
        """Count the tokens of an answer."""
        if call := self._calls.pop(call_id, None):
            self._count(call, answer)

    def fail(self, call_id: UUID, answer: AIMessage | None) -> None:
        """Count the tokens of a failed call, which is no model call: only those that are answered are.

        A call without any answer costs nothing. Without `answer`, what arrived of it is estimated.
        """
        call = self._calls.pop(call_id, None)
        if call is None:
            return
        # As the `usage` events count them, of which the usage by agent and of a restarted run are made.
        self._add(model_calls=-1)
        self._reserve += call.is_reserve
        if answer is not None and (answer.text or answer.tool_calls):
            self._count(call, answer)
        elif received := call.received_tokens:
            cost = call.cost + self._prices.get(call.model, Prices()).of(0, received)
            self._add(input_tokens=call.input_tokens, output_tokens=received, cost=cost)

    def use_tool(self) -> None:
        """Count a tool call, or raise `BudgetExhausted`."""
        self.check(tool_calls=1)
        self._add(tool_calls=1)

    def allows(self, **coming: float) -> bool:
        """Return whether amounts such as `tool_calls=1` stay within the limits; nothing is recorded."""
        return self._find_exceeded(**coming) is None

    def check(self, **coming: float) -> None:
        """Raise `BudgetExhausted` if amounts such as `tool_calls=1` would exceed a limit."""
        if over := self._find_exceeded(**coming):
            raise self._refusal(over)

    def _find_exceeded(self, **coming: float) -> LimitUsage | None:
        return next((level for level in self._limit_usages(**coming) if level.is_over), None)

    def _limit_usages(self, **coming: float) -> Iterator[LimitUsage]:
        yield from iterate_limits(self.budget, usage_by_limit(self.used), coming, self.reserved)
        yield from self._shared_levels(**coming)

    def _shared_levels(self, **coming: float) -> Iterator[LimitUsage]:
        if self._shared is not None:
            yield from self._shared.levels(**coming)

    def _refusal(self, over: LimitUsage) -> BudgetExhausted:
        reason = str(over)
        self.mark_exhausted(reason)
        return BudgetExhausted(f"{reason[0].upper()}{reason[1:]}.", limit=over.limit)

    def _count(self, call: _Call, answer: AIMessage | None) -> None:
        usage = answer.usage_metadata if answer is not None else None
        if usage is not None:
            sent, received = clamp_tokens(usage["input_tokens"]), clamp_tokens(usage["output_tokens"])
        else:
            sent, received = call.input_tokens, count_tokens([answer]) if answer is not None else 0
        # A fallback may have answered. The answer names its model, sometimes with a date.
        model = str(answer.response_metadata.get("model_name") or "") if answer is not None else ""
        prices = find_price(self._prices, model) or self._prices.get(call.model) or Prices()
        cost = prices.of(sent, received, count_cached(usage))
        self._add(input_tokens=sent, output_tokens=received, cost=cost)

    def _add(self, **amounts: Any) -> None:
        before = self._used
        self._used = replace(before, **{name: getattr(before, name) + n for name, n in amounts.items()})


class ModelCallCounter(AsyncCallbackHandler):
    """Counts model calls in a meter, and their answers while they are written (`llms.AnswerLimit`).

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

    def receive_part(self, run_id: UUID, size: int) -> None:
        """Count a part of an answer, of `size` bytes, or raise `BudgetExhausted`."""
        self._meter.receive(run_id, size)

    async def on_llm_end(self, response: LLMResult, *, run_id: UUID, **kwargs: Any) -> None:
        self._meter.end(run_id, _find_answer(response))

    async def on_llm_error(self, error: BaseException, *, run_id: UUID, **kwargs: Any) -> None:
        response = kwargs.get("response")
        self._meter.fail(run_id, _find_answer(response) if isinstance(response, LLMResult) else None)


class ToolCallCounter(AsyncCallbackHandler):
    """Counts tool calls in a meter; inline and first, so that no other handler sees a refused call."""

    raise_error = True
    run_inline = True

    def __init__(self, meter: UsageMeter) -> None:
        self._meter = meter

    async def on_tool_start(self, serialized: dict[str, Any], input_str: str, **kwargs: Any) -> None:
        self._meter.use_tool()


def _format_amount(limit: str, amount: float) -> str:
    return f"{amount:.3g} (cost)" if limit == "cost" else f"{int(amount):,} {limit.replace('_', ' ')}"


def _is_not_refusal(record: logging.LogRecord) -> bool:
    """Return whether a log record is anything but LangChain's warning that one of our callbacks refused a
    call.
    """
    text = record.getMessage()
    ours = any(f"Error in {handler.__name__}." in text for handler in (ModelCallCounter, ToolCallCounter))
    return not (ours and BudgetExhausted.__name__ in text)


def count_cached(usage: UsageMetadata | None) -> int:
    """Return how many of the prompt's tokens the endpoint had in its cache; 0 where it does not report it."""
    if usage is None:
        return 0
    details = usage.get("input_token_details") or {}
    # OpenAI's service tiers have keys of their own, such as `priority_cache_read`.
    cached = sum(
        value for key, value in details.items() if key.endswith("cache_read") and isinstance(value, int)
    )
    return min(clamp_tokens(cached), clamp_tokens(usage["input_tokens"]))


def clamp_tokens(tokens: int) -> int:
    """Return a token count from an endpoint, limited to 0 … `MAX_TOKENS`."""
    return min(max(tokens, 0), MAX_TOKENS)


def _find_answer(response: LLMResult) -> AIMessage | None:
    first = next((one for generations in response.generations for one in generations), None)
    message = first.message if isinstance(first, ChatGeneration) else None
    return message if isinstance(message, AIMessage) else None
