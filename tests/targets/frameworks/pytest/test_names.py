import pytest

NAMES = ["says \"hi\" and it's fine", "ünï ☃ 雪", "a [b] (c) {d} $1 ^*+?.|\\ x", "comma, semi; colon:: and/slash"]


@pytest.mark.parametrize("name", NAMES, ids=NAMES)
def test_odd(name):
    pass
