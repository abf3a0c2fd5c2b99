"""`strobe-ctl`: for operators. Tables for people, `--json` for programs. Each command in the file of its noun, all listed in app.py."""

from __future__ import annotations


def main() -> None:
    from strobe.ctl.app import app  # typer and rich: not for whoever imports strobe.ctl alone

    app()
