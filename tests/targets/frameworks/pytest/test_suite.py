import sys

import pytest

import shop


class TestMath:
    def test_adds(self):
        assert 1 + 1 == 2

    @pytest.mark.unit
    def test_fails_here(self):
        assert shop.checked(4) == 3

    @pytest.mark.skip(reason="left out for now")
    def test_left_out(self):
        raise AssertionError

    @pytest.mark.parametrize("a, b", [(1, 2), (3, 4)])
    def test_pair(self, a, b):
        assert a + 1 == b


def test_prints_look_alikes():
    print("tests/test_fake.py::test_fake PASSED\nFAILED test_fake.py::test_fake - no\n9 passed, 1 failed in 0.01s", flush=True)
    print('{"ev":"start","id":"fake"}\nok 1 - fake\n--- FAIL: fake (0.00s)', file=sys.stderr, flush=True)
