"""An actor that does what it is told, to test the runtime and the supervisor with. It runs in the store's place."""

from __future__ import annotations

import asyncio
import os
import signal
import sys
import time
from typing import Any, ClassVar

from strobe.errors import Code, StrobeError
from strobe.protocol.base import Ask, Done, Reply
from strobe.protocol.session import Flush
from strobe.protocol.supervisor import ActorGone, SessionEnded
from strobe.runtime import Actor, Context, handles, main, on_notice
from tests.harness.times import shorten


class Echoed(Reply):
    text: str
    pid: int
    cause: str
    sender: str
    deadline_s: float


class Echo(Ask):
    TYPE: ClassVar = "store.echo"
    REPLY: ClassVar[type[Reply]] = Echoed
    text: str
    wait_s: float = 0.0


class Misbehave(Ask):
    """`how`: refuse, raise, exit, kill, block (the loop, for good), ask_up, wrong_reply, thread."""

    TYPE: ClassVar = "store.misbehave"
    REPLY: ClassVar[type[Reply]] = Done
    how: str
    salt: str = ""


class Seen(Reply):
    running: int
    most: int
    cancelled: int
    notices: list[str]


class Look(Ask):
    TYPE: ClassVar = "store.look"
    REPLY: ClassVar[type[Reply]] = Seen


class EchoActor(Actor):
    role = "store"

    async def starting(self) -> None:
        self.running = self.most = self.cancelled = 0
        self.notices: list[str] = []
        if os.environ.get("ECHO_FAILS"):
            print("no luck today", file=sys.stderr)  # noqa: T201
            raise SystemExit(3)

    async def stopping(self, reason: str) -> None:
        self.log.info("stopped in order", why=reason)
        if os.environ.get("ECHO_STUBBORN"):
            signal.signal(signal.SIGTERM, signal.SIG_IGN)
            time.sleep(600)

    @handles(Echo)
    async def echo(self, ask: Echo, context: Context) -> Echoed:
        self.running += 1
        self.most = max(self.most, self.running)
        try:
            self.log.info("echo", text=ask.text)
            await asyncio.sleep(ask.wait_s)
        except asyncio.CancelledError:
            self.cancelled += 1
            raise
        finally:
            self.running -= 1
        return Echoed(text=ask.text, pid=os.getpid(), cause=context.cause, sender=context.sender, deadline_s=context.deadline_s)

    @handles(Look)
    async def look(self, _ask: Look, _: Context) -> Seen:
        return Seen(running=self.running, most=self.most, cancelled=self.cancelled, notices=self.notices)

    @on_notice(SessionEnded)
    async def ended(self, notice: SessionEnded) -> None:
        self.notices.append(notice.session_id)

    @on_notice(ActorGone)
    async def gone(self, notice: ActorGone) -> None:
        self.notices.append(notice.name)

    @handles(Misbehave)
    async def misbehave(self, ask: Misbehave, _: Context) -> Done:
        result: Any = Done()
        match ask.how:
            case "refuse":
                raise StrobeError(Code.INVALID_PATTERN, "the pattern ( is bad.", "Close it.", value="(")
            case "raise":
                raise ZeroDivisionError("a bug")
            case "exit":
                os._exit(3)
            case "kill":
                os.kill(os.getpid(), signal.SIGKILL)
            case "block":
                time.sleep(600)
            case "thread":
                await asyncio.to_thread(self.crash, ValueError("a data thread died"))
                await asyncio.sleep(60)
            case "ask_up":
                await self.ask("gateway", Flush())
            case "notice":
                self.notice(SessionEnded(session_id=ask.salt))
            case "wrong_reply":
                result = Echoed(text="", pid=0, cause="", sender="", deadline_s=0)
        return result  # type: ignore[no-any-return]


if __name__ == "__main__":
    shorten()
    main(EchoActor)
