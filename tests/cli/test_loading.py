"""Imports without the collector."""

import gc

import pytest

from maniple.cli.process import pause_garbage_collection


def test_garbage_collection_pauses_while_modules_load_and_ignores_their_objects():
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
