"""Imports without the collector."""

import gc

import pytest

from maniple.cli.process import pause_garbage_collection


def test_nothing_is_collected_while_modules_are_loaded_and_what_they_made_is_kept_out_of_it_afterwards():
    with pause_garbage_collection():
        assert not gc.isenabled()
    assert gc.isenabled()
    try:
        assert gc.get_freeze_count() > 0
    finally:
        gc.unfreeze()


def test_a_module_that_cannot_be_loaded_leaves_the_collector_at_work():
    with pytest.raises(ImportError), pause_garbage_collection():
        raise ImportError("no such module")
    gc.unfreeze()
    assert gc.isenabled()
