"""All commands of strobe-ctl, in the order its help shows them."""

from __future__ import annotations

import typer

from strobe.ctl.data import query, sessions, sql, tail
from strobe.ctl.doctor import bench, doctor
from strobe.ctl.evidence import evidence
from strobe.ctl.export import export
from strobe.ctl.node import actors, status, stop
from strobe.ctl.purge import purge
from strobe.ctl.settings import settings
from strobe.ctl.story import trace_request
from strobe.ctl.top import top

app = typer.Typer(name="strobe-ctl", help="Look after Strobe's node.", no_args_is_help=True, add_completion=False, pretty_exceptions_enable=False)
for _command in (status, actors, sessions, query, sql, tail, top, export, purge, settings, trace_request, doctor, stop):
    app.command()(_command)
app.command(context_settings={"allow_extra_args": True, "ignore_unknown_options": True})(bench)
app.add_typer(evidence)
