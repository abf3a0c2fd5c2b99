import unittest


class Ünï(unittest.TestCase):
    def test_größe(self):
        pass


def adder(name):
    def test(self):
        pass

    setattr(Ünï, name, test)


for name in ("test says \"hi\" and it's fine", "test a [b] (c) {d} $1 ^*+?.|\\ x", "test comma, semi; colon:: and/slash"):
    adder(name)
