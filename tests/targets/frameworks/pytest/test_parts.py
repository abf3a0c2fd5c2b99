import pytest


@pytest.fixture
def broken():
    raise RuntimeError("no such thing")


@pytest.fixture
def broken_after():
    yield
    raise RuntimeError("would not go")


def test_setup(broken):
    pass


def test_teardown(broken_after):
    pass


@pytest.mark.xfail(reason="known")
def test_expected():
    raise AssertionError


@pytest.mark.xfail(strict=True)
def test_passes_against_all_odds():
    pass


def test_subtests(subtests):
    for number in range(3):
        with subtests.test(number=number):
            assert number == 1
