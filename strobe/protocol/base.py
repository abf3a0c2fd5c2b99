"""Messages between actors. One file per answering actor; each ask names its reply type, and has exactly one handler."""

from __future__ import annotations

from typing import ClassVar

from strobe.model.base import Noun


class Message(Noun):
    """Anything sent. `TYPE` is its name on the wire: `<answering actor>.<verb>`."""

    TYPE: ClassVar[str]


class Reply(Noun):
    """What an ask is answered with."""


class Ask(Message):
    """A question to the actor that answers it. `REPLY` is the model of its answer."""

    REPLY: ClassVar[type[Reply]]


class Done(Reply):
    """It was done; there is nothing to tell."""
