"""Tokens of each tool as tools/list gives it, output schema included, by the o200k_base tokenizer (package bpe-openai)."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Final

import bpe_openai

from tests.bench.figure import Figure
from tests.bench.options import Options

TOKENIZER: Final = "o200k_base"
LIMIT: Final = 600
TOOLS: Final = Path(__file__).resolve().parents[2] / "schemas" / "mcp-tools.json"


def tokens_by_tool() -> dict[str, int]:
    encoding = bpe_openai.get_encoding(TOKENIZER)
    tools = json.loads(TOOLS.read_text())
    return {tool["name"]: len(list(encoding.encode(json.dumps(tool, separators=(",", ":"), ensure_ascii=False)))) for tool in tools}


def run(_: Options) -> list[Figure]:
    return [Figure(f"tokens of {name}", count, "tokens", LIMIT, note=TOKENIZER) for name, count in tokens_by_tool().items()]
