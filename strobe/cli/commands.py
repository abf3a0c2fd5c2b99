"""Every command of `strobe` but `mcp`."""

from __future__ import annotations

import sys
from typing import Annotated

import typer

app = typer.Typer(name="strobe", help="A debugger that a language model drives.", no_args_is_help=True, add_completion=False, pretty_exceptions_enable=False)


@app.command()
def node(foreground: Annotated[bool, typer.Option("--foreground", help="Stay in the foreground, for service managers.")] = False) -> None:
    """Run the node: all of Strobe's processes. Clients start it by themselves; it ends after 30 idle minutes."""
    if foreground:
        from strobe.supervisor.main import run_node  # not needed, and not cheap, in the other branch

        sys.exit(run_node())
    from strobe.supervisor.start import ensure_node  # same

    print(f"The node runs (pid {ensure_node()}).")


@app.command()
def mcp() -> None:
    """Serve MCP on stdin and stdout. (Handled in strobe/cli/__init__.py; here only for --help.)"""


@app.command(context_settings={"allow_extra_args": True, "ignore_unknown_options": True})
def demo(context: typer.Context) -> None:
    """Find a real bug in a small program, step by step, through a real MCP session."""
    from strobe.cli.demo import run_demo  # needs an MCP client: half a second

    sys.exit(run_demo(context.args))


def run_command() -> None:
    app()
