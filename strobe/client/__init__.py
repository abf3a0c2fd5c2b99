"""Talking to the node from outside: strobe-ctl and tests.

    async with Client(home) as client:                      # or Client(home, start=True): starts the node
        reply = await client.ask("supervisor", Status())    # message.REPLY; raises StrobeError
"""

from strobe.client.client import Client

__all__ = ["Client"]
