"""Writes the generated contract of the product.

    python -m actors.gateway.schemas            writes schemas/{mcp-tools,settings,errors,protocol}.json and strobe/cli/card.json
    python -m actors.gateway.schemas --check    exits 1 and names the files that are stale
    python -m actors.gateway.schemas --release  also keeps this version's contract in schemas/released, for tests/contract/test_protocol.py

(schemas/record-layout.json comes from strobe.lanes.generate.)
"""

from __future__ import annotations

import importlib
import json
import os
import pkgutil
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import strobe.protocol
from actors.gateway.card import build_card
from actors.gateway.server import listed_tools
from strobe import __version__
from strobe.config import SETTINGS, Setting
from strobe.errors import Code
from strobe.protocol.base import Ask, Message

ROOT = Path(__file__).resolve().parents[2]


def tools_json() -> Any:
    return listed_tools(legacy=False).model_dump(by_alias=True, mode="json", exclude_none=True)["tools"]


def settings_json() -> Any:
    """JSON Schema of settings.json."""
    properties = {setting.key: _setting_schema(setting) for setting in SETTINGS}
    return {"$schema": "https://json-schema.org/draft/2020-12/schema", "type": "object", "properties": properties, "additionalProperties": False}


def _setting_schema(setting: Setting) -> dict[str, Any]:
    if isinstance(setting.default, bool):
        return {"type": "boolean", "default": setting.default}
    if isinstance(setting.default, tuple):
        return {"type": "array", "items": {"type": "string"}, "default": list(setting.default)}
    kind = "integer" if isinstance(setting.default, int) else "number"
    return {"type": kind, "minimum": setting.low, "maximum": setting.high, "default": setting.default}


def errors_json() -> Any:
    """The codes, and the schema of an error as replies carry it."""
    text = {"type": "string"}
    properties = {"code": {"enum": [str(code) for code in Code]}, "what": text, "nextStep": text, "value": {}}
    return {"type": "object", "properties": properties, "required": ["code", "what", "nextStep"], "additionalProperties": False}


def messages() -> Iterator[type[Message]]:
    """Every message of strobe.protocol, by file and then by name."""
    for module_info in sorted(pkgutil.iter_modules(strobe.protocol.__path__), key=lambda info: info.name):
        module = importlib.import_module(f"strobe.protocol.{module_info.name}")
        for name in sorted(vars(module)):
            value = getattr(module, name)
            if isinstance(value, type) and issubclass(value, Message) and value.__module__ == module.__name__ and hasattr(value, "TYPE"):
                yield value


def protocol_json() -> Any:
    """{type: {message: schema, reply?: schema}}."""
    found = {}
    for message in messages():
        entry = {"message": message.model_json_schema(by_alias=True)}
        if issubclass(message, Ask):
            entry["reply"] = message.REPLY.model_json_schema(by_alias=True, mode="serialization")
        found[message.TYPE] = entry
    return {"version": __version__, "messages": dict(sorted(found.items()))}


def generated() -> dict[Path, str]:
    """Path below the repository's root → text."""
    contents = {
        "schemas/mcp-tools.json": tools_json(),
        "schemas/settings.json": settings_json(),
        "schemas/errors.json": errors_json(),
        "schemas/protocol.json": protocol_json(),
    }
    texts = {Path(name): json.dumps(value, indent=1, ensure_ascii=False) + "\n" for name, value in contents.items()}
    texts[Path("strobe/cli/card.json")] = json.dumps(build_card(), separators=(",", ":"), ensure_ascii=False) + "\n"
    return texts


def stale() -> list[Path]:
    """Files that are not as they would be written now."""
    return [path for path, text in generated().items() if not (ROOT / path).is_file() or (ROOT / path).read_text(encoding="utf-8") != text]


def main(arguments: list[str]) -> int:
    with tempfile.TemporaryDirectory() as empty:
        os.environ["STROBE_HOME"] = empty  # the contract does not depend on this user's settings
        if "--check" in arguments:
            paths = stale()
            for path in paths:
                print(f"stale: {path}; run python -m actors.gateway.schemas", file=sys.stderr)  # noqa: T201
            return 1 if paths else 0
        texts = generated()
        if "--release" in arguments:
            kept = ("mcp-tools", "protocol")
            texts |= {Path(f"schemas/released/{name}-{__version__}.json"): texts[Path(f"schemas/{name}.json")] for name in kept}
        for path, text in texts.items():
            (ROOT / path).parent.mkdir(parents=True, exist_ok=True)
            (ROOT / path).write_text(text, encoding="utf-8")
    return 0


if __name__ == "__main__":
    raise SystemExit(main(sys.argv[1:]))
