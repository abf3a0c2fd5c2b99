"""How commands speak: a rich table or text for people, one JSON document for programs, an error with its next step."""

from __future__ import annotations

import asyncio
import functools
import json
import os
import signal
import sys
from collections.abc import Callable, Coroutine, Sequence
from typing import Annotated, Any, ParamSpec, TypeVar

import typer
from rich.console import Console
from rich.table import Table
from rich.text import Text

from strobe.errors import StrobeError
from strobe.render.table import align

P = ParamSpec("P")
T = TypeVar("T")
AsJson = Annotated[bool, typer.Option("--json", help="One JSON document instead of a table.")]


def command(function: Callable[P, Coroutine[Any, Any, T]]) -> Callable[P, None]:
    """An async function as a command. A StrobeError is shown as an error and ends with status 1; a returned number is the status."""

    @functools.wraps(function)
    def run(*args: P.args, **kwargs: P.kwargs) -> None:
        try:
            result = asyncio.run(function(*args, **kwargs))
        except StrobeError as error:
            show_error(error, as_json=bool(kwargs.get("as_json")))
            sys.exit(1)
        except KeyboardInterrupt:
            sys.exit(130)
        except BrokenPipeError:  # `… | head`: whoever reads has enough
            os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())  # the interpreter flushes what is left at its end
            sys.exit(128 + signal.SIGPIPE)
        sys.exit(result if isinstance(result, int) else 0)

    return run


def show_json(value: Any) -> None:
    print(json.dumps(value, ensure_ascii=False, indent=2))


def show_line(value: Any) -> None:
    """JSON on one line, at once."""
    print(json.dumps(value, ensure_ascii=False), flush=True)


def show_error(error: StrobeError, *, as_json: bool) -> None:
    if as_json:
        show_json({"error": error.to_wire()})
    else:
        print(f"{error.code}: {error.what}\n{error.next_step}", file=sys.stderr)


def show_table(columns: Sequence[str], rows: Sequence[Sequence[Any]], *, empty: str) -> None:
    """A rich table on a terminal; in a pipe plain aligned columns, of which nothing is cut."""
    if not rows:
        print(empty)
    elif sys.stdout.isatty():
        _rich_table(columns, rows)
    else:
        print("\n".join(align([list(columns), *([_cell(cell) for cell in row] for row in rows)])))


def _cell(value: Any) -> str:
    return "" if value is None else str(value).replace("\n", " ")


def _rich_table(columns: Sequence[str], rows: Sequence[Sequence[Any]]) -> None:
    table = Table(box=None, pad_edge=False, header_style="bold")
    for column in columns:
        table.add_column(column, overflow="fold")
    for row in rows:
        table.add_row(*(Text(_cell(cell)) for cell in row))  # Text: a pattern's [brackets] are no markup
    Console().print(table)


def age(seconds: float) -> str:
    """`12 s`, `3 min`, `5 h`, `2 d`."""
    for unit, size in (("d", 86_400), ("h", 3_600), ("min", 60)):
        if seconds >= size:
            return f"{seconds / size:.0f} {unit}"
    return f"{seconds:.0f} s"
