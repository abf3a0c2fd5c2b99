"""`strobe COMMAND`. `strobe mcp` is answered before anything else is imported: its client waits for it."""

from __future__ import annotations

import sys


def main() -> None:
    try:
        _main()
    except Exception as error:
        if not hasattr(error, "next_step"):  # a StrobeError: the class itself need not be imported for this
            raise
        print(f"strobe: {error.what} {error.next_step}", file=sys.stderr)  # type: ignore[attr-defined]
        sys.exit(1)


def _main() -> None:
    if sys.argv[1:2] == ["mcp"]:
        from strobe.cli.mcp import run_shim  # only what the shim needs: stdlib and zmq

        run_shim()
    elif sys.argv[1:] == ["node", "--foreground"]:  # what shims start, and wait for
        from strobe.supervisor.main import run_node  # no typer: starting counts here

        sys.exit(run_node())
    else:
        from strobe.cli.commands import run_command  # typer, and what the command needs

        run_command()
