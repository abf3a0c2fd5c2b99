"""Samples process trees. It has no verdicts yet: it answers what /proc says."""

from __future__ import annotations

import asyncio

from actors.stuck_detector.sample import sample_tree
from strobe.protocol.stuck_detector import Diagnose, DiagnoseReply
from strobe.runtime import Actor, Context, handles


class StuckDetector(Actor):
    role = "stuck_detector"

    @handles(Diagnose)
    async def diagnose(self, ask: Diagnose, _: Context) -> DiagnoseReply:
        """Two samples a quarter of a second apart. Errors: PROCESS_EXITED."""
        return await asyncio.to_thread(sample_tree, ask.pid)
