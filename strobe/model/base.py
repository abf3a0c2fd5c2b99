"""How nouns and messages go over the wire: pydantic models, camelCase names, unknown fields refused."""

from __future__ import annotations

from pydantic import BaseModel, ConfigDict
from pydantic.alias_generators import to_camel


class Noun(BaseModel):
    """Base of every model that crosses a process boundary."""

    model_config = ConfigDict(alias_generator=to_camel, populate_by_name=True, extra="forbid", frozen=True)
