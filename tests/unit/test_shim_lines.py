"""Lines of a pipe: whole however they are cut, bounded, and named when too long."""

from __future__ import annotations

import os

import pytest
from hypothesis import given
from hypothesis import strategies as st

from strobe.cli.lines import Lines, Oversized


def read_all(chunks: list[bytes], limit: int) -> list[bytes | Oversized]:
    """What Lines finds when `chunks` are written to its pipe one by one."""
    read_end, write_end = os.pipe()
    try:
        lines = Lines(read_end, limit)
        found: list[bytes | Oversized] = []
        for chunk in chunks:
            for start in range(0, len(chunk), 1 << 15):
                os.write(write_end, chunk[start : start + (1 << 15)])
                found += lines.read()
        os.close(write_end)
        while not lines.ended:
            found += lines.read()
        return found
    finally:
        os.close(read_end)


@given(st.lists(st.binary(min_size=1, max_size=40), max_size=20), st.integers(1, 30))
def test_cuts_do_not_matter(chunks: list[bytes], limit: int) -> None:
    whole = b"".join(chunks)
    expected = [line for line in whole.split(b"\n")[:-1] if len(line) > limit or line.strip()]
    found = read_all(chunks, limit)
    assert len(found) == len(expected)
    for got, line in zip(found, expected, strict=True):
        if len(line) > limit:
            assert isinstance(got, Oversized) and got.length == len(line)
        else:
            assert got == line.strip()


def test_memory_is_bounded_by_the_limit() -> None:
    read_end, write_end = os.pipe()
    lines = Lines(read_end, 1000)
    for _ in range(200):
        os.write(write_end, b"x" * 30_000)
        assert lines.read() == []
        assert sum(map(len, lines._parts)) <= 1000
    os.write(write_end, b'","id":7}\nnext\n')
    oversized, following = lines.read()
    assert isinstance(oversized, Oversized) and oversized.length == 200 * 30_000 + 9
    assert following == b"next"
    os.close(read_end)
    os.close(write_end)


FILL = b"x" * 2000


@pytest.mark.parametrize(
    ("line", "request_id"),
    [
        (b'{"jsonrpc":"2.0","id":5,"method":"tools/call","params":"' + FILL + b'"}', b"5"),
        (b'{ "id" : "a-1", "params":"' + FILL + b'"}', b'"a-1"'),
        (b'{"method":"m","params":"' + FILL + b'","jsonrpc":"2.0","id":12}', b"12"),
        (b'{"method":"m","params":"' + FILL + b'","id":12,"jsonrpc":"2.0"}', b"12"),
        (b'{"method":"m","params":{"id":3,"x":"' + FILL + b'"}}', b"null"),
    ],
)
def test_id_of_a_long_request_is_found_where_it_is_first_or_last(line: bytes, request_id: bytes) -> None:
    (found,) = read_all([line[:900], line[900:] + b"\n"], 1000)
    assert isinstance(found, Oversized) and (found.length, found.request_id) == (len(line), request_id)
