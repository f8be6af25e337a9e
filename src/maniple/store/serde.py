"""How checkpoints are written."""

from langgraph.checkpoint.serde.jsonplus import JsonPlusSerializer


def serializer() -> JsonPlusSerializer:
    """Return a serializer that reads LangChain's and LangGraph's own types back, and no others.

    Whoever could change a checkpoint on disk could else have any class called. LangGraph itself adds the
    types of a graph's state when it compiles one.
    """
    return JsonPlusSerializer(allowed_msgpack_modules=None)
