"""`strobe-ci`: a test suite run without a model, as debug_test runs it; what failed is run again traced. Reports for people, CI systems and later."""

from __future__ import annotations


def main() -> None:
    from strobe.ci.app import app  # typer and rich: not for whoever imports strobe.ci alone

    app()
