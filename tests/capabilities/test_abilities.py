"""The planner's prompt lists what members can and cannot do."""

from maniple.agents.offers import Offer, join_abilities, merge_offers


def test_the_abilities_of_all_offers_are_joined_by_worker():
    merged = merge_offers(
        [Offer(abilities={"coder": "There is numpy."}), Offer(abilities={"coder": "No GPU."})]
    )
    assert merged.abilities == {"coder": "There is numpy. No GPU."}
    assert join_abilities(merged.abilities, {"coder": "", "researcher": "No search."}) == {
        "coder": "There is numpy. No GPU.",
        "researcher": "No search.",
    }
