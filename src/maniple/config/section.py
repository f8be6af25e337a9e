"""What every section of the settings has in common."""

from pydantic import BaseModel, ConfigDict


class Section(BaseModel):
    """A part of the settings: it never changes, and a key that is not known is a mistake."""

    model_config = ConfigDict(frozen=True, extra="forbid", protected_namespaces=())
