"""The collector's work, one step at a time, in its own thread: lanes, output, losses and crashes in, batches out, acknowledgements back.

Order within a step matters. What the session submits goes first (hooks before the records that use them), then records (marks before
the output that they place), then output, losses and `settled`. Each batch carries the resume mark that describes the state after it.
"""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Callable, Mapping
from typing import Final

import numpy as np
from numpy.typing import NDArray

from actors.session.collector.copied import Copied
from actors.session.collector.crashes import CrashPages
from actors.session.collector.lanes import Advance, Lanes, Slice
from actors.session.collector.losses import Losses
from actors.session.collector.mark import ResumeMark
from actors.session.collector.order import HOLD_NS, SLACK_NS
from actors.session.collector.outbox import Outbox, Parts
from actors.session.collector.printed import Printed
from actors.session.collector.rates import Rates
from actors.session.collector.requests import Submission, Wish
from actors.session.collector.sampling import Sampling
from actors.session.collector.spool import Spool
from actors.session.collector.stream import BatchStream
from actors.session.crash import Crash
from strobe.lanes.clock import ClockLine
from strobe.lanes.layout import SLOT_BYTES, Clock, Kind
from strobe.lanes.pool import Pool
from strobe.launch.keeper import Keeper
from strobe.launch.processor import ProcessorTime
from strobe.model.sampling import SamplingLimits

MS: Final = 1_000_000
BATCH_SLOTS: Final = (1 << 20) // SLOT_BYTES
DUE_SLOTS: Final = (256 << 10) // SLOT_BYTES  # so many are sent at once; fewer wait for DUE_NS
DUE_NS: Final = 8 * MS
LOSSES_NS: Final = 100 * MS
BURY_NS: Final = 250 * MS
BURY_SHORT_NS: Final = 40 * MS  # while chunks are short: a thousand children in a row take one each
SETTLED_NS: Final = 25 * MS
GAP_NS: Final = 50 * MS  # a flush waits so long for records that were begun and are not published
URGENT_WAIT_NS: Final = 5 * MS


class Collection:
    def __init__(
        self, stream: BatchStream, pool: Pool, keeper: Keeper, on_crash: Callable[[Crash], None], held: Mapping[object, int] | None = None
    ) -> None:
        """`held`: times (ns) from which on events are still being made."""
        mark = ResumeMark.unpack(stream.resume)
        self._pool = pool
        self._keeper = keeper
        self._on_crash = on_crash
        self._held = held if held is not None else {}
        self._settle_max: int | None = None
        self._lanes = Lanes(pool, mark.chunks)
        self.copied = Copied() if int(pool.header["copy_output"]) else None
        self._printed = Printed(Spool(keeper.output_path, mark.file), mark.printed)
        self.losses = Losses(pool, mark.losses)
        self._crashes = CrashPages(pool, mark.crashes)
        self.limits = SamplingLimits()
        now_ns = time.monotonic_ns()
        self._rates, self._sampling, self._processor = Rates(pool, now_ns), Sampling(), ProcessorTime(keeper.status().pid, now_ns)
        self._line = ClockLine() if pool.clock is Clock.TSC else None
        self._out = Outbox(stream, Parts(self._lanes, self._printed, self.losses, self._crashes))
        self._waiting_since = 0
        self._marks_until = 0
        self._looked_ns = 0
        self._drained = False  # all lanes were empty at the last look
        self._losses_next = self._bury_next = self._settled_next = 0
        self._size = 0
        self.ended = False

    def close(self) -> None:
        self._printed.spool.close()

    def step(self, submissions: deque[Submission], wishes: list[Wish]) -> bool:
        """Does what there is to do; True when there was anything, so that the next step should come soon."""
        now_ns = time.monotonic_ns()
        self._settle_max = min(list(self._held.values()), default=None)  # before submissions are looked at
        urgent = any(wish.kind != "crashes" for wish in wishes)
        finishing = any(wish.kind == "finish" for wish in wishes)
        if self._line is not None:
            self._line.correct(now_ns)
        sent_before = self._out.last_seq
        self._out.take_acks()
        if self._out.ended:
            self._grant(wishes, now_ns, True)
            return True
        self._look_at_crashes()
        self._send_submissions(submissions)
        waiting = self._send_records(now_ns, urgent)
        self._sample(now_ns)
        if now_ns >= self._bury_next or finishing:
            quiet_ns = BURY_SHORT_NS if self._lanes.short else BURY_NS
            self._bury_next = now_ns + quiet_ns
            self._lanes.bury(now_ns, 0 if finishing else quiet_ns)
            self._lanes.repair_free()
        self._send_output(now_ns, urgent, finishing)
        if now_ns >= self._losses_next or urgent:
            self._losses_next = now_ns + LOSSES_NS
            self._send_losses()
        self._send_settled(now_ns, urgent)
        self._grant(wishes, now_ns, not submissions)
        return self._out.last_seq != sent_before or waiting > 0 or bool(wishes)

    # What goes out

    def _send_submissions(self, submissions: deque[Submission]) -> None:
        while submissions and self._out.room > 0:
            item = submissions.popleft()
            header = item.header
            if item.ticks is not None:
                header = {"events": [{**event, "tsNs": self._mono(item.ticks)} for event in header["events"]]}
            if item.kind == "hooks":
                self.losses.hook_limit = max([self.losses.hook_limit, *(hook["id"] for hook in header["hooks"])])
            self._out.send(item.kind, header, crash=self._crashes.handle(*item.crash) if item.crash else None)

    def _send_records(self, now_ns: int, urgent: bool) -> int:
        """Answers how many slots waited before."""
        self._lanes.grow_when_short()
        waiting = self._lanes.look(now_ns)
        self._looked_ns = now_ns
        if not waiting:
            self._waiting_since = 0
            self._marks_until, self._drained = now_ns, True
            return 0
        self._waiting_since = self._waiting_since or now_ns
        if waiting < DUE_SLOTS and now_ns - self._waiting_since < DUE_NS and not urgent:
            return waiting
        self._drained = False
        while self._out.room > 0:
            parts = list(self._lanes.take(BATCH_SLOTS, now_ns))
            if not parts:
                self._marks_until, self._drained = now_ns, True
                self._waiting_since = 0
                break
            self._send_slices(parts)
        return waiting

    def _send_slices(self, parts: list[Slice]) -> None:
        views = [self._lanes.views(part) for part in parts]
        for slot_map, slots in views:
            self._rates.saw(slot_map, slots)
        for part in parts if self.copied is None else ():
            marks = self._lanes.marks(part)
            if marks.size:
                self._printed.marked(marks, [self._mono(ticks) for ticks in marks["ts"].tolist()], (part.thread, part.pid, part.tid, part.comm))
        header = {
            "slices": [{"thread": part.thread, "pid": part.pid, "tid": part.tid, "comm": part.comm, "slots": part.end - part.start} for part in parts],
            "clock": self._line.points() if self._line is not None else None,
        }
        content = b""
        if self.copied is not None:
            header["segments"], content = self.copied.take(views, self._mono)
        # One slice goes out of shared memory as it stands; more are put together, which costs less than more frames would.
        frames = [_joined([view[0] for view in views]), _joined([view[1] for view in views])]
        self._out.send("records", header, [*frames, content] if content else frames, advances=[Advance(part.index, part.serial, part.end) for part in parts])

    def _sample(self, now_ns: int) -> None:
        """Functions that are called too often are recorded less from now on, those that have calmed down more."""
        if self._out.room <= 0:
            return
        rates = self._rates.window(now_ns, self.losses.hook_limit)
        if rates is None:
            return
        periods = self._pool.hooks["sample_period"][: rates.size]
        wanted = self._sampling.decide(rates, periods.copy(), self.limits, self._processor.busy(now_ns) if self.limits.overhead_percent is not None else 1.0)
        changed = np.flatnonzero(wanted != periods)
        if changed.size:
            periods[changed] = wanted[changed]
            self._out.send("sampling", {"tsNs": now_ns, "periods": dict(zip(changed.tolist(), wanted[changed].tolist(), strict=True))})

    def _send_output(self, now_ns: int, urgent: bool, finishing: bool) -> None:
        self._size = self._keeper.page.output_bytes
        if self._size == self._printed.spool.position and self._printed.idle:
            return
        final = finishing and self._drained
        self._printed.marks_dropped(int(self._pool.header["dropped_by_kind"][Kind.OUTPUT_MARK]))
        while self._out.room > 0:
            read = self._printed.read(self._size)
            batch = self._printed.batch(
                now_ns,
                self._marks_until,
                size=self._size,
                recorder=bool(self._pool.header["threads"]),
                hold_ns=0 if final else HOLD_NS,
                wait_ns=0 if final else URGENT_WAIT_NS if urgent else None,
            )
            if batch is not None:
                self._out.send("output", batch.header, [batch.content])
            elif not read:
                break

    def _send_losses(self) -> None:
        if self._out.room < 2:
            return
        for header in self.losses.news(self._lanes.unfinished):
            self._out.send("losses", header)

    def _send_settled(self, now_ns: int, urgent: bool) -> None:
        if not self._out.unsettled or not self._drained or self._out.room <= 0 or (now_ns < self._settled_next and not urgent):
            return
        pending_ns = self._printed.oldest_pending_ns()
        if urgent and pending_ns is not None:
            return  # it is soon settled, and worth waiting for
        self._settled_next = now_ns + SETTLED_NS
        bounds = [self._marks_until, *([] if pending_ns is None else [pending_ns - SLACK_NS]), *([] if self._settle_max is None else [self._settle_max])]
        self._out.send("settled", {"tsNs": min(bounds)})

    # Crashes and wishes

    def _look_at_crashes(self) -> None:
        for crash in self._crashes.look():
            self._on_crash(crash)

    def _grant(self, wishes: list[Wish], now_ns: int, all_submitted: bool) -> None:
        for wish in list(wishes):
            if self._granted(wish, now_ns, all_submitted):
                wishes.remove(wish)

    def _granted(self, wish: Wish, now_ns: int, all_submitted: bool) -> bool:
        """Drives a wish on; True when it came true (and its waiter was told)."""
        if wish.kind == "crashes":
            if self._crashes.unfinished():
                return False
        elif wish.seq is None:
            if all_submitted and self._all_sent(wish, now_ns):
                if wish.kind == "finish":
                    self.losses.widen()
                    self._send_losses()
                    if self._out.room < 2:
                        return False
                    self._out.send("end", {})
                wish.seq = self._out.last_seq
            return False
        elif self._out.acked < wish.seq:
            return False
        self._out.take_acks()
        if wish.kind == "finish":
            self._lanes.look(now_ns)  # frees what was committed last
            self.ended = True
        wish.done.set()
        return True

    def _all_sent(self, wish: Wish, now_ns: int) -> bool:
        if wish.lanes is None:
            wish.lanes, wish.since_ns = self._lanes.snapshot(), now_ns
        lanes = self._lanes.reached(wish.lanes) or (self._drained and now_ns - wish.since_ns > GAP_NS)
        output = self._printed.spool.needed_from() >= wish.output_bytes
        return lanes and output and not self._out.unsettled and self._looked_ns >= wish.since_ns

    def _mono(self, ticks: int) -> int:
        return ticks if self._line is None else self._line.mono(ticks)

    @property
    def recent_output_from(self) -> int:
        return self._printed.spool.recent_from

    def totals(self) -> dict[str, int]:
        return self.losses.totals(self._lanes.unfinished)


def _joined(parts: list[NDArray[np.uint8]]) -> memoryview:
    whole = parts[0] if len(parts) == 1 else np.concatenate(parts)
    return whole.data
