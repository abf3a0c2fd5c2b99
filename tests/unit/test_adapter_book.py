"""What is kept of a test's output."""

from __future__ import annotations

import pytest

from strobe.adapters.book import OUTPUT_MAX, Said, shortened


@pytest.mark.parametrize("size", (0, 1, OUTPUT_MAX - 1, OUTPUT_MAX))
def test_small_output_is_kept_whole(size: int) -> None:
    assert shortened("a" * size) == "a" * size


@pytest.mark.parametrize("piece", (1, 7, 1000, OUTPUT_MAX, 5 * OUTPUT_MAX))
def test_large_output_keeps_its_beginning_and_its_end(piece: int) -> None:
    text = "".join(chr(ord("a") + number % 26) for number in range(5 * OUTPUT_MAX))
    said = Said()
    for start in range(0, len(text), piece):
        said.add(text[start : start + piece])
    half = OUTPUT_MAX // 2
    assert said.text() == f"{text[:half]}\n… {len(text) - OUTPUT_MAX} characters left out …\n{text[-half:]}"
