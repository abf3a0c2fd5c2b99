import time
from pathlib import Path


def test_meets_on_the_right():
    """Passes only while the other file's test runs too."""
    Path("here.right").touch()
    end = time.monotonic() + 20
    while not Path("here.left").exists():
        assert time.monotonic() < end, "left did not come"
        time.sleep(0.01)
    time.sleep(0.2)
