"""The stored part of a request."""

from langchain_core.messages import HumanMessage

from maniple.redaction import Redactor
from maniple.runs import RunRequest


def test_a_secret_that_is_a_word_of_the_format_keeps_no_other_secret_in_clear():
    request = RunRequest([HumanMessage("the key is sk-VERYSECRET1")])
    kept = request.without_secrets(Redactor(["messages", "content", "sk-VERYSECRET1"]))
    assert "sk-VERYSECRET1" not in kept
    assert "the key is ***" in kept
