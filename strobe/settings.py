"""Settings (SPEC §9): flat keys in `$STROBE_HOME/settings.json`, then `<projectRoot>/.strobe/settings.json` on top.

They are read anew on every call. A bad value falls back to the default, and a warning says so.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

from strobe import paths

FILE_BYTES_MAX: Final = 1 << 20


@dataclass(frozen=True)
class Setting:
    """`kind` is the JSON type: integer, number, boolean or strings (a list of them). Bounds are inclusive."""

    key: str
    kind: str
    default: Any
    meaning: str
    low: float | None = None
    high: float | None = None

    def problem(self, value: Any) -> str | None:
        """What is wrong with `value`, in words; None if nothing is."""
        if not _is_kind(value, self.kind):
            return f"must be {_KIND_WORDS[self.kind]}"
        if (self.low is not None and value < self.low) or (self.high is not None and value > self.high):
            return f"must be from {self.low:,} to {self.high:,}" if self.high is not None else f"must be at least {self.low:,}"
        return None


_KIND_WORDS: Final = {"integer": "a whole number", "number": "a number", "boolean": "true or false", "strings": "a list of texts"}


def _is_kind(value: Any, kind: str) -> bool:
    if kind == "boolean":
        return isinstance(value, bool)
    if kind == "strings":
        return isinstance(value, list) and all(isinstance(item, str) for item in value)
    numbers = (int,) if kind == "integer" else (int, float)
    return isinstance(value, numbers) and not isinstance(value, bool)


ALL: Final[tuple[Setting, ...]] = (
    Setting("events.maxPerSession", "integer", 2_000_000, "trace events a session keeps; the oldest go first", 1, 100_000_000),
    Setting("mcp.legacyTools", "boolean", False, "list the former tool names too"),
    Setting("node.idleMinutes", "number", 30, "minutes without client or session after which the node ends", 0.01, 525_600),
    Setting("redaction.enabled", "boolean", True, "hide secrets in replies"),
    Setting("redaction.patterns", "strings", [], "more regular expressions of what is a secret"),
    Setting("retention.days", "number", 7, "days a retained session is kept", 0, 36_500),
    Setting("retention.maxBytes", "integer", 10_000_000_000, "bytes the store keeps in all; the oldest retained sessions go first", 1_000_000, 1 << 50),
    Setting("sampling.callsPerSecond", "integer", 100_000, "calls per second above which a function is sampled", 1, 1_000_000_000),
    Setting("sampling.rate", "number", 0.01, "share of the calls recorded of a sampled function", 0.000_001, 1),
    Setting("test.statusRetryMs", "integer", 5_000, "milliseconds a test status asks its caller to wait", 500, 60_000),
    Setting("vision.confidenceThreshold", "number", 0.3, "least confidence of a seen widget", 0, 1),
    Setting("vision.enabled", "boolean", False, "look at windows where accessibility sees nothing"),
    Setting("vision.iouMergeThreshold", "number", 0.5, "overlap from which two seen widgets are one", 0, 1),
    Setting("vision.sidecarIdleTimeoutSeconds", "integer", 300, "seconds after which the vision process ends", 1, 86_400),
)
BY_KEY: Final[Mapping[str, Setting]] = {setting.key: setting for setting in ALL}


@dataclass(frozen=True)
class Settings:
    """Values by key, where each came from (`default` or a file), and what was wrong with the files."""

    values: Mapping[str, Any]
    origins: Mapping[str, str]
    warnings: list[str] = field(default_factory=list)

    def __getitem__(self, key: str) -> Any:
        return self.values[key]


def settings_files(project_root: Path | None = None) -> list[Path]:
    """In the order they are read; later ones win."""
    files = [paths.home() / "settings.json"]
    if project_root is not None:
        files.append(project_root / ".strobe" / "settings.json")
    return files


def read_settings(project_root: Path | None = None) -> Settings:
    values = {setting.key: setting.default for setting in ALL}
    origins = dict.fromkeys(values, "default")
    warnings: list[str] = []
    for path in settings_files(project_root):
        for key, value in _read_file(path, warnings).items():
            setting = BY_KEY.get(key)
            problem = f"is not a setting (there are: {', '.join(BY_KEY)})" if setting is None else setting.problem(value)
            if problem:
                used = f"; {values[key]!r} is used" if setting else ""
                warnings.append(f"{path}: {key} {problem}{used}.")
            else:
                values[key], origins[key] = value, str(path)
    return Settings(values, origins, warnings)


def _read_file(path: Path, warnings: list[str]) -> dict[str, Any]:
    try:
        with path.open("rb") as file:
            text = file.read(FILE_BYTES_MAX + 1)
    except FileNotFoundError:
        return {}
    except OSError as error:
        warnings.append(f"{path} cannot be read ({error.strerror}); defaults are used.")
        return {}
    try:
        found = json.loads(text) if len(text) <= FILE_BYTES_MAX else None
    except ValueError as error:
        warnings.append(f"{path} is not JSON ({error}); defaults are used.")
        return {}
    if not isinstance(found, dict):
        warnings.append(f"{path} is not one JSON object of settings; defaults are used.")
        return {}
    return found
