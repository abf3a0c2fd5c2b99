"""Settings: layers, bounds, warnings, and that a change is seen at once."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from strobe.config import BY_KEY, SETTINGS, load_settings


@pytest.fixture(autouse=True)
def _home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("STROBE_HOME", str(tmp_path / "home"))
    (tmp_path / "home").mkdir()
    (tmp_path / "project" / ".strobe").mkdir(parents=True)


def write(tmp_path: Path, where: str, content: object) -> Path:
    file = tmp_path / "home" / "settings.json" if where == "home" else tmp_path / "project" / ".strobe" / "settings.json"
    file.write_text(content if isinstance(content, str) else json.dumps(content))
    return file


def test_defaults_are_the_specs() -> None:
    found = load_settings()
    assert found.values["events.maxPerSession"] == 2_000_000
    assert found.values["retention.maxBytes"] == 10 * 1024**3
    assert (found.values["node.idleMinutes"], found.values["retention.days"], found.values["redaction.enabled"]) == (30, 7, True)
    assert set(found.values) == set(BY_KEY) and not found.warnings and not found.sources
    assert all(setting.accepts(list(setting.default) if isinstance(setting.default, tuple) else setting.default) for setting in SETTINGS)


def test_project_goes_over_home(tmp_path: Path) -> None:
    home = write(tmp_path, "home", {"retention.days": 3, "test.statusRetryMs": 600})
    project = write(tmp_path, "project", {"retention.days": 4})
    found = load_settings(str(tmp_path / "project"))
    assert (found.values["retention.days"], found.values["test.statusRetryMs"]) == (4, 600)
    assert found.sources == {"retention.days": str(project), "test.statusRetryMs": str(home)}
    assert load_settings().values["retention.days"] == 3


@pytest.mark.parametrize(
    ("key", "bad"),
    [
        ("events.maxPerSession", 0), ("events.maxPerSession", 100_000_001), ("events.maxPerSession", "many"), ("events.maxPerSession", True),
        ("events.maxPerSession", 1.5), ("test.statusRetryMs", 499), ("redaction.enabled", 1), ("redaction.patterns", "x"), ("redaction.patterns", [1]),
        ("vision.confidenceThreshold", 1.1), ("node.idleMinutes", None), ("retention.days", -1),
    ],
)  # fmt: skip
def test_bad_value_falls_back_and_says_key_value_and_range(tmp_path: Path, key: str, bad: object) -> None:
    write(tmp_path, "home", {key: bad, "retention.maxBytes": 1 << 30})
    found = load_settings()
    default = BY_KEY[key].default
    assert found.values[key] == (list(default) if isinstance(default, tuple) else default)
    assert found.values["retention.maxBytes"] == 1 << 30, "one bad value must not spoil the others"
    (warning,) = found.warnings
    assert key in warning and json.dumps(bad) in warning and BY_KEY[key].range in warning


def test_bad_project_value_leaves_the_homes(tmp_path: Path) -> None:
    write(tmp_path, "home", {"retention.days": 3})
    write(tmp_path, "project", {"retention.days": -3})
    found = load_settings(str(tmp_path / "project"))
    assert found.values["retention.days"] == 3 and len(found.warnings) == 1


@pytest.mark.parametrize("content", ["{", "[]", '"x"', "\ufeff", ""])
def test_file_that_is_no_object_is_said_and_ignored(tmp_path: Path, content: str) -> None:
    file = write(tmp_path, "home", content)
    found = load_settings()
    assert not found.sources and str(file) in found.warnings[0]


def test_unknown_key_is_said(tmp_path: Path) -> None:
    write(tmp_path, "home", {"retention.dais": 3})
    assert "'retention.dais'" in load_settings().warnings[0]


def test_warnings_and_file_size_are_bounded(tmp_path: Path) -> None:
    write(tmp_path, "home", {f"k{n}": 1 for n in range(1000)})
    assert len(load_settings().warnings) == 20
    write(tmp_path, "home", json.dumps({"retention.days": 3}) + " " * (1 << 20))
    assert "long" in load_settings().warnings[0] and load_settings().values["retention.days"] == 7


def test_change_is_seen_by_the_next_call(tmp_path: Path) -> None:
    for days in (1, 2, 3):
        write(tmp_path, "home", {"retention.days": days}).touch()
        new = tmp_path / "home" / "new.json"
        new.write_text(json.dumps({"retention.days": days}))
        new.replace(tmp_path / "home" / "settings.json")
        assert load_settings().values["retention.days"] == days


def test_returned_values_are_the_callers_own() -> None:
    load_settings().values["redaction.patterns"].append("x")
    assert load_settings().values["redaction.patterns"] == []
