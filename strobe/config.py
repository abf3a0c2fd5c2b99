"""Settings (SPEC §9): defaults, then $STROBE_HOME/settings.json, then <projectRoot>/.strobe/settings.json. Read again when changed.

A bad value falls back to its default, with a warning that names key, value and range.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Any, Final

from strobe import paths

FILE_BYTES_MAX: Final = 1 << 20
WARNINGS_MAX: Final = 20


@dataclass(frozen=True, slots=True)
class Setting:
    key: str
    default: Any
    low: float | None = None
    high: float | None = None

    @property
    def range(self) -> str:
        """What is accepted, in words."""
        if isinstance(self.default, bool):
            return "true or false"
        if isinstance(self.default, tuple):
            return "a list of up to 100 texts"
        kind = "a whole number" if isinstance(self.default, int) else "a number"
        return f"{kind} from {self.low:,} to {self.high:,}"

    def accepts(self, value: Any) -> bool:
        if isinstance(self.default, bool):
            return isinstance(value, bool)
        if isinstance(self.default, tuple):
            return isinstance(value, list) and len(value) <= 100 and all(isinstance(item, str) and len(item) <= 1000 for item in value)
        numeric = isinstance(value, int) or (isinstance(self.default, float) and isinstance(value, float))
        return numeric and not isinstance(value, bool) and float(self.low or 0) <= value <= float(self.high or 0)


SETTINGS: Final = (
    Setting("events.maxPerSession", 2_000_000, 1, 100_000_000),
    Setting("test.statusRetryMs", 5_000, 500, 60_000),
    Setting("sampling.callsPerSecond", 100_000, 1, 1_000_000_000),
    Setting("sampling.rate", 0.01, 0.0001, 1.0),
    Setting("children.follow", True),
    Setting("children.shells", False),
    Setting("retention.days", 7, 0, 3_650),
    Setting("retention.maxBytes", 10 << 30, 1 << 20, 1 << 50),
    Setting("node.idleMinutes", 30.0, 0.01, 100_000),
    Setting("redaction.enabled", True),
    Setting("redaction.patterns", ()),
    Setting("vision.enabled", False),
    Setting("vision.confidenceThreshold", 0.3, 0.0, 1.0),
    Setting("vision.iouMergeThreshold", 0.5, 0.0, 1.0),
    Setting("vision.sidecarIdleTimeoutSeconds", 300, 1, 86_400),
    Setting("mcp.legacyTools", False),
)
BY_KEY: Final = {setting.key: setting for setting in SETTINGS}


@dataclass(frozen=True, slots=True)
class Settings:
    """`values` by flat key, every key present; `sources` says which file set one; `warnings` what was refused."""

    values: dict[str, Any]
    sources: dict[str, str]
    warnings: tuple[str, ...]


def load_settings(project_root: str | None = None) -> Settings:
    """As they are now. Costs two stat calls when nothing changed."""
    files = [paths.home() / "settings.json"]
    if project_root is not None:
        files.append(Path(project_root) / ".strobe" / "settings.json")
    values = {setting.key: list(setting.default) if isinstance(setting.default, tuple) else setting.default for setting in SETTINGS}
    sources: dict[str, str] = {}
    warnings: list[str] = []
    for file in files:
        accepted, refused = _read(file, _version(file))
        values.update(accepted)
        sources.update(dict.fromkeys(accepted, str(file)))
        warnings.extend(refused)
    return Settings(values, sources, tuple(warnings[:WARNINGS_MAX]))


def _version(file: Path) -> tuple[int, int, int]:
    """(mtime ns, size, inode); zeros when there is no such file."""
    try:
        facts = file.stat()
    except OSError:
        return (0, 0, 0)
    return (facts.st_mtime_ns, facts.st_size, facts.st_ino)


@lru_cache(maxsize=64)
def _read(file: Path, version: tuple[int, int, int]) -> tuple[dict[str, Any], list[str]]:
    """(accepted values, warnings) of one version of one file."""
    _, size, inode = version
    if not inode:
        return {}, []
    if size > FILE_BYTES_MAX:
        return {}, [f"{file} is {size:,} bytes long; settings files end at {FILE_BYTES_MAX:,}. Defaults are used."]
    try:
        content = json.loads(file.read_text())
    except (OSError, ValueError) as error:
        return {}, [f"{file} cannot be read as JSON ({error}). Defaults are used."]
    if not isinstance(content, dict):
        return {}, [f"{file} holds {type(content).__name__}, not an object of settings. Defaults are used."]
    return _judge(file, content)


def _judge(file: Path, content: dict[str, Any]) -> tuple[dict[str, Any], list[str]]:
    accepted: dict[str, Any] = {}
    refused: list[str] = []
    for key, value in content.items():
        setting = BY_KEY.get(key)
        if setting is None:
            refused.append(f"{file}: there is no setting {key[:80]!r}.")
        elif setting.accepts(value):
            accepted[key] = value
        else:
            refused.append(f"{file}: {key} is {json.dumps(value)[:80]}, but must be {setting.range}; {setting.default!r} is used.")
    return accepted, refused
