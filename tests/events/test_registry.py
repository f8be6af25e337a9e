"""A new kind of event is one Python class: it is streamed, redacted, stored, replayed and typed."""

import importlib
import json
import sys
from pathlib import Path

import pytest
from langchain_core.messages import HumanMessage

from maniple.events import EVENT_TYPES, Event, EventRedactor, RunView, Translator, as_json, base, read_event
from maniple.events.base import UnknownEventType
from maniple.events.typescript import typescript_types
from maniple.redaction import Redactor
from maniple.replay.event_lines import EventLines
from maniple.store import EventRecord, open_store, read_event_pages
from tests.events.raw_events import Turn, raw
from tests.store.samples import stored_run

pytestmark = pytest.mark.anyio
ROOT = Path(__file__).parents[2]
SECRET = "sk-canary-0123456789"
MODULE = '''
from maniple.events.base import Event, EventPart, Identifier

class Place(EventPart):
    """A place on earth."""
    name: str

class WeatherReported(Event, wire_name="weather", scope="work", custom_event="weather_reported"):
    """The weather at a place."""
    station_id: Identifier
    place: Place
    celsius: float | None = None
'''
TYPES = """/** A place on earth. */
export interface Place {
  name: string;
}

/** The weather at a place. */
export interface WeatherReported {
  type: "weather";
  station_id: string;
  place: Place;
  celsius?: number | null;
}

export type EventData =
  | WeatherReported;
"""


@pytest.fixture
def weather(tmp_path, monkeypatch):
    """The event class of a temporary module."""
    (tmp_path / "weather_events.py").write_text(MODULE)
    monkeypatch.syspath_prepend(str(tmp_path))
    yield importlib.import_module("weather_events").WeatherReported
    del sys.modules["weather_events"], base._TYPES["weather"], base._CUSTOM["weather_reported"]


def reported(turn: Turn):
    data = {"station_id": SECRET, "place": {"name": f"near {SECRET}"}}
    return raw("on_custom_event", "weather_reported", turn.ns, "call", data=data)


async def test_a_new_event_type_needs_no_other_file(weather, tmp_path):
    translator, turn = Translator("r", "t", [HumanMessage("How is the weather?")]), Turn("coder", 1)
    redactor = EventRedactor(Redactor([SECRET]))
    raw_events = [turn.start(), reported(turn), turn.end()]
    streamed = [one for each in raw_events for event in translator.feed(each) for one in redactor.feed(event)]
    [event] = [one for one in streamed if one.type == "weather"]
    assert event.data() == {"station_id": SECRET, "place": {"name": "near ***"}, "celsius": None}

    async with open_store(tmp_path / "maniple.db", tmp_path, server=True) as store:
        run = await stored_run(store)
        await store.events.append([(run.run_id, [EventRecord(1, event.type, as_json(event))])])
        [[record]] = [page async for page in read_event_pages(store.events, run.run_id)]
    assert read_event(record.type, record.data) == event
    view = RunView()
    view.apply_records([record])
    assert view.event_number == 1
    assert json.loads(EventLines().lines([record]))["data"] == event.data()
    assert typescript_types([weather]).endswith(TYPES)


def test_a_wire_name_belongs_to_one_class():
    with pytest.raises(TypeError, match="PlanChanged"):

        class OtherPlan(Event, wire_name="plan"):
            title: str


def test_an_event_of_an_unknown_type_is_skipped_by_the_view_and_refused_by_the_reader():
    view = RunView()
    view.apply_records([EventRecord(7, "from_another_version", "{}")])
    assert view.event_number == 7
    with pytest.raises(UnknownEventType):
        read_event("from_another_version", "{}")


def test_the_pages_types_are_those_of_the_python_classes():
    file = ROOT / "web/src/events.generated.ts"
    assert file.read_text() == typescript_types(EVENT_TYPES.values()), "run `make types`"
