"""The session's data side: one thread that carries records and output to the store. Everything public may be called from any thread."""

from __future__ import annotations

import threading
import time
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from typing import Any, Final

from actors.session.collector.collection import Collection
from actors.session.collector.requests import Submission, Wish
from actors.session.collector.stream import BatchStream
from actors.session.crash import Crash
from strobe.errors import Code, StrobeError
from strobe.lanes.pool import Pool
from strobe.launch.keeper import Keeper
from strobe.launch.output import STDERR, STDOUT, parse_output
from strobe.model.probe import Hook
from strobe.model.sampling import SamplingLimits
from strobe.runtime.stream import StreamProducer

HOOKS_PER_BATCH: Final = 1000
SUBMISSIONS_MAX: Final = 100_000
HELLO_MS: Final = 100
URGENT_MS: Final = 1  # someone waits for it
BUSY_MS: Final = 4  # at full speed a batch of 256 KiB has come together by then: looking more often only costs
ACTIVE_MS: Final = 3
IDLE_MS: Final = 10
ASLEEP_MS: Final = 20
ACTIVE_S: Final = 0.25  # so long after the last activity the pauses stay short
IDLE_S: Final = 2.0
FINISH_S: Final = 60.0
JOIN_S: Final = 10.0
RECENT_MAX: Final = 512 << 10


class Collector:
    """`on_crash` and `on_failure` are called from the collector's thread. Call `start` once.

    `close` leaves everything to a successor; `finish` ends the session's data for good.
    """

    def __init__(
        self,
        *,
        session_id: str,
        pool: Pool,
        keeper: Keeper,
        endpoint: str,
        on_crash: Callable[[Crash], None],
        on_failure: Callable[[BaseException], None],
        open_stream: Callable[[], BatchStream] | None = None,
    ) -> None:
        self._pool = pool
        self._keeper = keeper
        self._on_crash = on_crash
        self._on_failure = on_failure
        self._open_stream = open_stream or (lambda: StreamProducer(endpoint, session_id))
        self._submissions: deque[Submission] = deque()
        self._held: dict[object, int] = {}
        self._asked: deque[Wish] = deque()
        self._lock = threading.Lock()
        self._stop = threading.Event()
        self._failure: BaseException | None = None
        self._finish: Wish | None = None
        self._collection: Collection | None = None
        self._limits = SamplingLimits()
        self._thread = threading.Thread(target=self._run, name=f"collector {session_id}", daemon=True)

    def start(self) -> None:
        self._thread.start()

    def announce_hooks(self, hooks: Iterable[Hook]) -> None:
        """To the store before any record that uses them, provided that it is called before they are installed."""
        wire = [hook.model_dump(by_alias=True) for hook in hooks]
        for start in range(0, len(wire), HOOKS_PER_BATCH):
            self._submit(Submission("hooks", {"hooks": wire[start : start + HOOKS_PER_BATCH]}))

    def announce_types(self, types: dict[str, bytes]) -> None:
        """Type bundles by key (strobe/values/bundle.py), before the hooks that name them."""
        for key, body in types.items():
            self._submit(Submission("hooks", {"hooks": [], "types": {key: body}}))

    def announce_modules(self, modules: dict[str, int]) -> None:
        """Load bias by path: what link-time addresses in types and values count from."""
        self._submit(Submission("hooks", {"hooks": [], "modules": modules}))

    def tell_event(self, kind: str, ticks: int, pid: int, tid: int, text: str, data: dict[str, Any]) -> None:
        """`ticks` in the pool's clock. A `crash` with the time and thread of a crash page lets that page go once the store has it."""
        event = {"type": kind, "pid": pid, "tid": tid, "text": text, "data": data}
        self._submit(Submission("event", {"events": [event]}, ticks, (ticks, tid) if kind == "crash" else None))

    def tell_timed(self, event: dict[str, Any]) -> None:
        """An event with its own tsNs, of CLOCK_MONOTONIC."""
        self._submit(Submission("event", {"events": [event]}))

    @contextmanager
    def holding(self) -> Iterator[None]:
        """Around the work whose events have a time within it: nobody is told meanwhile that everything up to now has been sent."""
        token = object()
        self._held[token] = time.monotonic_ns()
        try:
            yield
        finally:
            del self._held[token]

    def tell_session(self, fields: dict[str, Any]) -> None:
        """Fields of the catalog's record that changed, by their wire names."""
        self._submit(Submission("session", dict(fields)))

    def limit(self, limits: SamplingLimits) -> None:
        """From now on functions are sampled by these."""
        self._limits = limits
        if self._collection is not None:
            self._collection.limits = limits

    def losses(self) -> dict[str, int]:
        """What was lost so far, by cause; what is 0 is left out."""
        return self._collection.totals() if self._collection is not None else {}

    def flush(self, timeout_s: float) -> None:
        """Everything recorded, printed and told before the call is committed when it returns. Errors: TIMEOUT, ACTOR_UNAVAILABLE."""
        deadline = time.monotonic() + timeout_s
        wish = Wish("flush", output_bytes=self._output_bytes())
        self._wish(wish)
        wish.wait(max(0.0, deadline - time.monotonic()))

    def settle_crashes(self, timeout_s: float = 2.0) -> None:
        """Every crash page that was complete before the call has been given to `on_crash`. Errors: TIMEOUT, ACTOR_UNAVAILABLE."""
        wish = Wish("crashes")
        self._wish(wish)
        wish.wait(timeout_s)

    def finish(self, timeout_s: float = FINISH_S) -> None:
        """Drains everything, tells the final losses, ends the session's stream and the thread. A second call waits for the same.

        What is told afterwards goes nowhere. Errors: TIMEOUT, ACTOR_UNAVAILABLE.
        """
        with self._lock:
            wish = self._finish
        if wish is None:
            fresh = Wish("finish", output_bytes=self._output_bytes())
            with self._lock:
                wish = self._finish = self._finish or fresh
            if wish is fresh:
                self._wish(wish)
        wish.wait(timeout_s)
        self._thread.join(JOIN_S)

    def close(self) -> None:
        """Stops the thread. What is not committed stays where it is, for a successor. Safe to call again, and after `finish`."""
        self._stop.set()
        if self._thread.is_alive() and self._thread is not threading.current_thread():
            self._thread.join(JOIN_S)

    abandon = close

    def recent_output(self) -> dict[int, str]:
        """What each stream was given lately, at least the last 128 KiB of both, as far as there was so much. Errors: TIMEOUT."""
        end = self._output_bytes()
        start = self._collection.recent_output_from if self._collection is not None else end
        with self._keeper.output_path.open("rb") as file:
            file.seek(start)
            content = memoryview(file.read(max(0, end - start)))
        copied = self._collection.copied if self._collection is not None else None
        texts = {STDOUT: bytearray(), STDERR: bytearray()} if copied is None else {stream: bytearray(text) for stream, text in copied.recent.items()}
        for record in parse_output(content, start):
            texts[record.stream] += record.data
        return {stream: bytes(text[-RECENT_MAX:]).decode(errors="replace") for stream, text in texts.items()}

    def _output_bytes(self) -> int:
        """Size of the output file once it holds all that was written before this call."""
        try:
            self._keeper.control.catch_up()
        except StrobeError as error:
            if error.code is not Code.PROCESS_EXITED:  # an ended keeper has read everything
                raise
        return self._keeper.page.output_bytes

    def _submit(self, item: Submission) -> None:
        if len(self._submissions) >= SUBMISSIONS_MAX:
            what = f"{SUBMISSIONS_MAX} batches wait for the store."
            raise StrobeError(Code.ACTOR_UNAVAILABLE, what, "Wait until the store answers again.")
        self._submissions.append(item)

    def _wish(self, wish: Wish) -> None:
        with self._lock:
            if self._failure is not None or (self._thread.ident is not None and not self._thread.is_alive()):
                wish.failure = self._failure
                wish.done.set()
            else:
                self._asked.append(wish)

    def _run(self) -> None:
        stream = self._open_stream()
        wishes: list[Wish] = []  # being granted
        try:
            while not stream.hello(HELLO_MS):
                if self._stop.is_set():
                    return
            collection = Collection(stream, self._pool, self._keeper, self._on_crash, self._held)
            self._collection = collection
            collection.limits = self._limits  # read last: whoever sets them now finds the collection
            self._collect(stream, collection, wishes)
        except BaseException as error:  # noqa: BLE001 - whatever it was, the session must hear of it: without this thread it is deaf
            self._failure = error
            self._on_failure(error)
        finally:
            with self._lock:
                self._failure = self._failure or RuntimeError("it was closed")
            for wish in [*self._asked, *wishes]:
                wish.failure = self._failure
                wish.done.set()
            if self._collection is not None:
                self._collection.close()
            stream.close()

    def _collect(self, stream: BatchStream, collection: Collection, wishes: list[Wish]) -> None:
        active_at = time.monotonic()
        while not self._stop.is_set() and not collection.ended:
            while self._asked:
                wishes.append(self._asked.popleft())
            busy = collection.step(self._submissions, wishes)
            now = time.monotonic()
            active_at = now if busy else active_at
            quiet_s = now - active_at
            stream.poll(URGENT_MS if wishes else BUSY_MS if busy else ACTIVE_MS if quiet_s < ACTIVE_S else IDLE_MS if quiet_s < IDLE_S else ASLEEP_MS)
