"""The inbox of a run: what is sent is taken once, refused once, or still waits; nothing is lost."""

import asyncio

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from maniple.errors import StoreError
from maniple.scope.budget import Budget
from maniple.scope.inbox import Inbox, InputRefused, OpenQuestion
from maniple.scope.inputs import Cancel, Message, PlanChange, ReceivedInput, Reply, Resume, Retry, StepAnswer
from tests.inboxes import MemoryLog, an_inbox, sent

pytestmark = pytest.mark.anyio
SKIP = PlanChange("skip", 1)


class BrokenLog(MemoryLog):
    """Fails while it is told to."""

    is_broken = False

    async def write(self, added, settled):
        await asyncio.sleep(0)
        if self.is_broken:
            raise StoreError("the disk is full")
        await super().write(added, settled)


async def test_a_change_is_taken_from_the_first_step_of_a_plan_to_its_end():
    inbox = an_inbox()
    with pytest.raises(InputRefused):
        await inbox.put(sent(SKIP))
    inbox.open()
    await inbox.put(sent(SKIP))
    assert not await inbox.seal(applied=()), "what waits must be applied first"
    assert inbox.is_open
    assert await inbox.seal(applied=(SKIP.change_id,))
    with pytest.raises(InputRefused):
        await inbox.put(sent(PlanChange("redo", 1)))
    assert inbox.changes == (SKIP,)


async def test_an_input_that_could_not_be_stored_has_no_effect():
    log = BrokenLog()
    inbox = Inbox(log=log)
    inbox.open()
    log.is_broken = True
    for content in (Message("words"), SKIP, Cancel()):
        with pytest.raises(StoreError):
            await inbox.put(sent(content))
    assert (inbox.messages, inbox.changes, inbox.is_cancelled) == ([], (), False)


async def test_a_decision_that_could_not_be_stored_is_stored_with_the_next_input():
    log = BrokenLog()
    inbox = Inbox(log=log)
    await inbox.put(sent(Message("words"), "m"))
    log.is_broken = True
    with pytest.raises(StoreError):
        await inbox.decide("m", Reply("answered", "Yes."))
    inbox.decide_unsaved("m", Reply("next_run"))
    assert inbox.undecided == []
    log.is_broken = False
    await inbox.close(lambda one: None)
    assert [(one.input_id, one.reply) for one in log.settled] == [("m", Reply("next_run"))]


async def test_a_decision_takes_effect_also_when_the_lead_is_stopped_meanwhile():
    log = BrokenLog()
    inbox = Inbox(log=log)
    await inbox.put(sent(Message("words"), "m"))
    deciding = asyncio.ensure_future(inbox.decide("m", Reply("plan_changed"), [SKIP]))
    await asyncio.sleep(0)
    deciding.cancel()
    await asyncio.wait({deciding})
    assert [one.reply for one in log.settled] == [Reply("plan_changed")]
    assert inbox.undecided == []
    assert inbox.changes == (SKIP,)


async def test_one_of_two_answers_to_a_question_is_taken():
    inbox = an_inbox()
    question = OpenQuestion("key", "id")
    inbox.show(question)
    results = await asyncio.gather(
        *(inbox.answer(question, text) for text in ("one", "two")), return_exceptions=True
    )
    assert [type(one) for one in results] == [type(None), InputRefused]
    assert question.answered.done()
    answer = inbox.answer_to("key")
    assert answer is not None
    assert answer.value == "one"


async def test_an_answer_that_is_being_stored_when_its_step_stops_to_wait_reaches_the_step():
    inbox = Inbox(log=BrokenLog())
    question = OpenQuestion("key", "id")
    inbox.show(question)
    answering = asyncio.ensure_future(inbox.answer(question, "yes"))
    await asyncio.sleep(0)
    question.is_parked = True
    assert not await inbox.seal_questions(), "the graph is executed again"
    await answering
    assert await inbox.seal_questions()
    assert not inbox.takes_answers


async def test_a_cancelled_waiter_disturbs_no_other():
    inbox = an_inbox()
    inbox.open()
    first, second = (asyncio.ensure_future(inbox.next_message()) for _ in range(2))
    await asyncio.sleep(0)
    first.cancel()
    await inbox.put(sent(Message("words"), "m"))
    assert (await second).text == "words"


def test_a_retry_does_again_what_failed_and_ends_an_earlier_cancellation():
    retry = ReceivedInput("r", Retry(7, Budget(model_calls=9)))
    cancelled = Inbox([sent(Resume("id", "yes", 3)), sent(Cancel())])
    assert cancelled.is_cancelled
    inbox = Inbox([*cancelled.received, retry])
    assert not inbox.is_cancelled
    assert inbox.segment == retry.content
    assert inbox.budget == Budget(model_calls=9)
    assert [(one.action, one.change_id) for one in inbox.changes] == [("retry", "r")]


STEPS = st.sampled_from(["message", "change", "answer", "decide", "apply", "open", "seal", "fail", "restart"])


@settings(max_examples=150, deadline=None)
@given(st.lists(STEPS, max_size=40), st.sampled_from(["completed", "interrupted", "cancelled"]))
def test_each_input_is_refused_to_its_sender_or_stored_once_in_order(steps, end):
    asyncio.run(_check_history(steps, end))


class History:
    """An inbox with what was accepted, and what its plan has applied."""

    def __init__(self) -> None:
        self.log = BrokenLog()
        self.inbox = Inbox(log=self.log)
        self.accepted: list[str] = []
        self.applied: list[str] = []

    async def put(self, content, input_id) -> None:
        try:
            await self.inbox.put(sent(content, input_id))
        except (InputRefused, StoreError):
            return
        self.accepted.append(input_id)

    async def message(self, number) -> None:
        await self.put(Message("words"), number)

    async def change(self, number) -> None:
        await self.put(PlanChange("skip", 1, change_id=number), number)

    async def answer(self, number) -> None:
        question = OpenQuestion(number, "id")
        self.inbox.show(question)
        try:
            await self.inbox.answer(question, "yes")
        except StoreError:
            assert not question.answered.done()
        else:
            self.accepted.append(number)

    async def decide(self, _) -> None:
        for message in self.inbox.undecided[:1]:
            try:
                await self.inbox.decide(message.message_id, Reply("answered"))
            except StoreError:
                self.inbox.decide_unsaved(message.message_id, Reply("next_run"))

    async def apply(self, _) -> None:
        self.applied = [one.change_id for one in self.inbox.changes]

    async def open(self, _) -> None:
        self.inbox.open()

    async def seal(self, _) -> None:
        sealed = await self.inbox.seal(self.applied)
        assert sealed == (not self.inbox.undecided and not self.inbox.has_new(self.applied))

    async def fail(self, _) -> None:
        self.log.is_broken = not self.log.is_broken

    async def restart(self, _) -> None:
        replies = {one.input_id: one.reply for one in self.log.settled}
        stored = (ReceivedInput(o.input_id, o.content, reply=replies.get(o.input_id)) for o in self.log.added)
        self.inbox = Inbox(stored, self.log)


async def _check_history(steps, end) -> None:
    """Send inputs in any order, with failures and restarts, and compare the inbox with its log."""
    it = History()
    for number, action in enumerate(steps):
        await getattr(it, action)(str(number))
    it.log.is_broken = False
    await it.inbox.close(lambda one: Reply("dropped") if end == "cancelled" else None)
    assert [one.input_id for one in it.log.added] == it.accepted
    assert [one.input_id for one in it.inbox.received] == it.accepted
    settled = [one.input_id for one in it.log.settled]
    assert len(settled) == len(set(settled)), "a reply is written once"
    assert {one.input_id for one in it.inbox.received if one.reply is not None} == set(settled)
    assert end != "cancelled" or len(settled) == len(it.accepted)
    with pytest.raises(InputRefused):
        await it.inbox.put(sent(Message("too late")))


def test_answers_are_kept_for_the_steps_that_asked():
    inbox = Inbox([sent(StepAnswer("key", "id", {"a": 1}))])
    answer = inbox.answer_to("key")
    assert answer is not None
    assert answer.value == {"a": 1}
    assert inbox.answer_to("other") is None
