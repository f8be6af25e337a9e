from maniple.llms.calls import Shape, ShapeError, ask, ask_for, broke_off, read_json
from maniple.llms.capabilities import FEATURES, Capabilities, Feature, capabilities_of
from maniple.llms.models import ChatModels, open_chat_models, prompting_of

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
