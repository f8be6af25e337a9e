"""What the user writes meanwhile is given to an agent at work with its next model call."""

import pytest
from langchain.agents.middleware import ModelRequest, ModelResponse
from langchain_core.language_models.fake_chat_models import FakeListChatModel
from langchain_core.messages import AIMessage, HumanMessage
from langchain_core.runnables import RunnableLambda

from maniple.agents.middleware.user_messages import PassedOnMessages
from maniple.agents.task import Task, set_current_task
from maniple.scope.inbox import Inbox
from maniple.scope.inputs import Message, Reply
from maniple.scope.run_scope import SCOPE_KEY, RunScope
from tests.inboxes import an_inbox, sent

pytestmark = pytest.mark.anyio
CALL = AIMessage("", tool_calls=[{"name": "search", "args": {}, "id": "1"}])


def passed_on(message_id, *steps):
    return sent(Message(f"words of {message_id}"), message_id, Reply("passed_on", "", steps))


async def nothing():
    """Nothing happens."""


async def asked(inbox, *answers, during=nothing, before=None):
    """Return the result of one model call, and what the model was shown each time that it was asked."""
    left, shown = list(answers), []

    async def handler(request):
        shown.append([one.text for one in request.messages])
        await during()
        return ModelResponse(result=[left.pop(0)])

    async def work(_):
        with set_current_task(Task("r", "t", "d", step=1)):
            request = ModelRequest(
                model=FakeListChatModel(responses=[""]),
                messages=before or [HumanMessage("the step")],
                state={},
            )
            return await PassedOnMessages().awrap_model_call(request, handler)

    config = {"configurable": {SCOPE_KEY: RunScope(inbox=inbox)}}
    response = await RunnableLambda(work).ainvoke(None, config)
    return [one.text for one in response.result], shown


async def test_it_is_shown_once_and_stays_in_the_conversation_before_the_answer():
    inbox = an_inbox(*[passed_on("a", 1), passed_on("b", 2)])
    result, shown = await asked(inbox, CALL)
    assert len(result) == 2
    assert "words of a" in result[0]
    assert "words of a" in shown[0][-1]
    assert "words of b" not in str(shown)
    again, shown = await asked(inbox, AIMessage("done"))
    assert (again, shown) == (["done"], [["the step"]])


async def test_a_message_to_a_finished_agent_starts_one_more_call():
    inbox = an_inbox()

    async def write():
        if not inbox.decided:
            await inbox.put(sent(Message("words of a"), "a"))
            await inbox.decide("a", Reply("passed_on", "", [1]))

    result, shown = await asked(inbox, AIMessage("done"), AIMessage("done again"), during=write)
    assert [len(each) for each in shown] == [1, 3]
    assert result[0] == "done"
    assert result[-1] == "done again"


async def test_what_a_step_was_given_when_it_began_is_not_shown_again():
    inbox = an_inbox(*[passed_on("a", 2)])
    task = Task("r", "t", "d", step=1, user_messages=[one.text for one in inbox.begin_step(1)])
    result, shown = await asked(inbox, AIMessage("done"), before=[HumanMessage(task.instruction())])
    assert result == ["done"]
    assert str(shown).count("words of a") == 1


async def test_an_agent_that_goes_on_as_it_was_before_a_restart_is_given_it():
    inbox = an_inbox(*[passed_on("a", 1)])
    inbox.begin_step(1)
    result, shown = await asked(inbox, AIMessage("done"), before=[HumanMessage("the step as it was")])
    assert "words of a" in shown[0][-1]
    assert len(result) == 2


async def test_nothing_is_added_outside_of_a_run_that_takes_messages():
    result, shown = await asked(Inbox(), AIMessage("done"))
    assert (result, shown) == (["done"], [["the step"]])
