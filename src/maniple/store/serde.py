"""How checkpoints are written."""

from langgraph.checkpoint.serde.jsonplus import JsonPlusSerializer

ALLOWED: None = None
"""Only LangChain's and LangGraph's own types are read back.

Whoever could change a checkpoint on disk could else have any class called. LangGraph itself adds the types of
a graph's state when it compiles one.
"""


def serializer() -> JsonPlusSerializer:
    """Return a serializer that reads back what is `ALLOWED`."""
    return JsonPlusSerializer(allowed_msgpack_modules=ALLOWED)
