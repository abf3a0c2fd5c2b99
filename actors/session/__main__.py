"""`python -m actors.session --name session:…`, started by the supervisor."""

from actors.session.actor import Session
from strobe.runtime import main

main(Session)
