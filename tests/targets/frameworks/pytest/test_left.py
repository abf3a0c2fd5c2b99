import time
from pathlib import Path


def test_meets_on_the_left():
    """Passes only while the other file's test runs too."""
    Path("here.left").touch()
    end = time.monotonic() + 20
    while not Path("here.right").exists():
        assert time.monotonic() < end, "right did not come"
        time.sleep(0.01)
    time.sleep(0.2)
