def test_never_read(:
    pass
