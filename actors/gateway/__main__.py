from __future__ import annotations

from actors.gateway.actor import Gateway
from strobe.runtime import main

main(Gateway)
