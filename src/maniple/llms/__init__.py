from maniple.llms.calls import (
    Shape,
    ShapeError,
    ask,
    ask_for,
    broke_off,
    hide_call,
    read_json,
    read_partial_json,
)
from maniple.llms.capabilities import FEATURES, Capabilities, Feature, capabilities_of
from maniple.llms.models import ChatModels, open_chat_models, prompting_of
from maniple.llms.streams import PartialAnswer, observing

__all__ = [
    "FEATURES",
    "Capabilities",
    "ChatModels",
    "Feature",
    "PartialAnswer",
    "Shape",
    "ShapeError",
    "ask",
    "ask_for",
    "broke_off",
    "capabilities_of",
    "hide_call",
    "observing",
    "open_chat_models",
    "prompting_of",
    "read_json",
    "read_partial_json",
]
