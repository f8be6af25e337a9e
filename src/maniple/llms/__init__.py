from maniple.llms.calls import ask, broke_off, capabilities_of
from maniple.llms.capabilities import FEATURES, Capabilities, Feature
from maniple.llms.models import ChatModels, open_chat_models, prompting_of
from maniple.llms.repair import read_json
from maniple.llms.structured import Shape, ShapeError, ask_for

__all__ = [
    "FEATURES",
    "Capabilities",
    "ChatModels",
    "Feature",
    "Shape",
    "ShapeError",
    "ask",
    "ask_for",
    "broke_off",
    "capabilities_of",
    "open_chat_models",
    "prompting_of",
    "read_json",
]
