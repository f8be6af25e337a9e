"""LangGraph's own suite for checkpointers, on the saver of each store."""

import pytest

pytestmark = pytest.mark.anyio
REQUIRED = {"put", "put_writes", "get_tuple", "list", "delete_thread"}


async def test_the_saver_does_what_langgraph_expects_of_one(store):
    conformance = pytest.importorskip("langgraph.checkpoint.conformance")

    @conformance.checkpointer_test(name=type(store).__name__)
    async def saver():
        yield store.checkpointer

    report = await conformance.validate(saver)
    assert {name: one.failures for name, one in report.results.items() if one.failures} == {}
    assert {name for name, one in report.results.items() if one.passed} >= REQUIRED
    assert sum(one.tests_passed for one in report.results.values()) >= 58
