"""A former tool name: another tool with some arguments fixed."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from mcp.types import Tool as McpTool

from actors.gateway.tool import Tool
from strobe.errors import Code, StrobeError


@dataclass(frozen=True)
class Alias:
    name: str
    tool: Tool
    fixed: Mapping[str, Any]

    def arguments(self, given: Mapping[str, Any]) -> dict[str, Any]:
        """The tool's arguments. Raises VALIDATION_ERROR when a fixed one is given."""
        for field in self.fixed:
            if field in given:
                raise StrobeError(Code.VALIDATION_ERROR, f"`{field}` is not a field of {self.name}.", f"Leave it out, or call {self.tool.name}.", value=field)
        return {**given, **self.fixed}

    def advertised(self) -> McpTool:
        tool = self.tool.advertised()
        schema = dict(tool.input_schema)
        schema["properties"] = {name: value for name, value in schema["properties"].items() if name not in self.fixed}
        schema["required"] = [name for name in schema.get("required", []) if name not in self.fixed]
        return tool.model_copy(update={"name": self.name, "input_schema": schema, "description": f"Former name of {self.tool.name} {dict(self.fixed)}."})
