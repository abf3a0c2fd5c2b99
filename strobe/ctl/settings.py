"""`settings`: shows all, one, or sets one in $STROBE_HOME/settings.json."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Annotated, Any

import typer

from strobe import paths
from strobe.config import BY_KEY, SETTINGS, Settings, load_settings
from strobe.ctl.output import AsJson, command, show_json, show_table
from strobe.errors import Code, StrobeError
from strobe.supervisor.private import open_private


@command
async def settings(
    key: Annotated[str | None, typer.Argument(help="Only this one.")] = None,
    value: Annotated[str | None, typer.Argument(help="Set it to this (JSON), for all projects.")] = None,
    project_root: Annotated[Path | None, typer.Option(help="With this project's .strobe/settings.json on top.")] = None,
    as_json: AsJson = False,
) -> None:
    """Settings as they are in effect, and where each comes from."""
    if key is not None and key not in BY_KEY:
        raise StrobeError(Code.VALIDATION_ERROR, f"There is no setting {key!r}.", "`strobe-ctl settings` lists them.", value=key)
    if key is not None and value is not None:
        write_setting(key, value)
    found = load_settings(str(project_root.absolute()) if project_root else None)
    keys = [setting.key for setting in SETTINGS] if key is None else [key]
    if as_json:
        show_json({"settings": {name: _facts(found, name) for name in keys}, "warnings": list(found.warnings)})
        return
    rows = [(name, json.dumps(found.values[name]), found.sources.get(name, "default"), BY_KEY[name].range) for name in keys]
    show_table(("setting", "value", "from", "range"), rows, empty="")
    for warning in found.warnings:
        print(f"Warning: {warning}")


def _facts(found: Settings, name: str) -> dict[str, Any]:
    setting = BY_KEY[name]
    default = list(setting.default) if isinstance(setting.default, tuple) else setting.default
    return {"value": found.values[name], "default": default, "from": found.sources.get(name, "default"), "range": setting.range}


def write_setting(key: str, text: str) -> None:
    """Raises StrobeError(VALIDATION_ERROR): the value does not fit, or the present file is no JSON object (it is then left alone)."""
    value = _parsed(text)
    if not BY_KEY[key].accepts(value):
        raise StrobeError(Code.VALIDATION_ERROR, f"{key} cannot be {text}.", f"It must be {BY_KEY[key].range}.", value=text)
    file = paths.private_folder(paths.home()) / "settings.json"
    content = _present(file)
    content[key] = value
    new = file.with_suffix(".new")
    with open_private(new, append=False) as output:
        output.write(json.dumps(content, indent=2).encode() + b"\n")
    new.replace(file)


def _parsed(text: str) -> Any:
    try:
        return json.loads(text)
    except ValueError:
        return text


def _present(file: Path) -> dict[str, Any]:
    if not file.exists():
        return {}
    try:
        content = json.loads(file.read_text())
    except ValueError as error:
        raise StrobeError(Code.VALIDATION_ERROR, f"{file} is not JSON ({error}).", "Correct or remove it first.", value=str(file)) from error
    if not isinstance(content, dict):
        raise StrobeError(Code.VALIDATION_ERROR, f"{file} holds no object.", "Correct or remove it first.", value=str(file))
    return content
