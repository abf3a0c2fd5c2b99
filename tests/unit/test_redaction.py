"""What looks like a secret, and what does not."""

from __future__ import annotations

import time
from typing import Any

import pytest

from strobe.redaction import REDACTED, Redactor, is_secret_name

TOKEN = "ghp_" + "a1B2" * 9


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("password=hunter22 user=bob", f"password={REDACTED} user=bob"),
        ("DB_PASSWORD='correct horse' x", f"DB_PASSWORD='{REDACTED}' x"),
        ('{"apiKey": "abcd1234", "n": 5}', f'{{"apiKey": "{REDACTED}", "n": 5}}'),
        ("Authorization: Bearer abc123def456ghi789", f"Authorization: Bearer {REDACTED}"),
        ("postgres://app:s3cr3t@db.local/x", f"postgres://app:{REDACTED}@db.local/x"),
        (f"using {TOKEN}.", f"using {REDACTED}."),
        ("key AKIAIOSFODNN7EXAMPLE in use", f"key {REDACTED} in use"),
        ("jwt eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiIxMjM0In0.c2ln end", f"jwt {REDACTED} end"),
        ("-----BEGIN RSA PRIVATE KEY-----\nMIIE\nabc\n-----END RSA PRIVATE KEY-----\nafter", f"{REDACTED}\nafter"),
        ("token=4f9a8b7c6d5e4f3a2b1c", f"token={REDACTED}"),
        ("export GITHUB_TOKEN=abcdefgh12345", f"export GITHUB_TOKEN={REDACTED}"),
    ],
)
def test_secrets_in_texts(text: str, shown: str) -> None:
    redactor = Redactor()
    assert redactor.text(text) == shown
    assert redactor.found == 1
    assert Redactor().text(shown) == shown  # what is redacted stays as it is


@pytest.mark.parametrize(
    "text",
    [
        "unexpected token: identifier", "password: required", "secret=none", "tokens=4000", "keyboard: qwerty", "passed: 12 tests", "https://host:8080/x@y",
        "author: somebody", "basic arithmetic works", "the bearer of bad news", "0x7ffd12345678", "cookies are on the table", "monkey=banana", "compass=north",
    ],
)  # fmt: skip
def test_what_is_no_secret_is_left_alone(text: str) -> None:
    redactor = Redactor()
    assert redactor.text(text) == text
    assert redactor.found == 0


@pytest.mark.parametrize("name", ["password", "DB_PASSWORD", "apiKey", "client.secret", "auth_token", "userPassword", "secretKey", "passwd2", "API-KEY"])
def test_names_of_secrets(name: str) -> None:
    assert is_secret_name(name)


@pytest.mark.parametrize("name", ["tokens", "maxTokens", "passwordLength", "keyCount", "token", "author", "monkey", "compass", "secretary", "value"])
def test_names_of_other_things(name: str) -> None:
    assert not is_secret_name(name)


@pytest.mark.parametrize(
    ("value", "shown"),
    [
        ({"name": "password", "type": "const char *", "value": "hunter2"}, {"name": "password", "type": "const char *", "value": REDACTED}),
        ({"user": {"name": "bob", "password": "hunter2", "age": 4}}, {"user": {"name": "bob", "password": REDACTED, "age": 4}}),
        ({"password": {"@": "0x55", "text": "hunter2", "size": 7}}, {"password": {"@": "0x55", "text": REDACTED, "size": 7}}),
        (["prog", "--password", "hunter2", "-v"], ["prog", "--password", REDACTED, "-v"]),
        ({"apiKey": None, "secret": "", "apiKey2": "0x7ffe0000"}, {"apiKey": None, "secret": "", "apiKey2": "0x7ffe0000"}),
        ({"id": f"s-{TOKEN}", "cursor": TOKEN}, {"id": f"s-{TOKEN}", "cursor": TOKEN}),
        ([1, 2.5, True, None], [1, 2.5, True, None]),
    ],
)
def test_values(value: Any, shown: Any) -> None:
    assert Redactor().value(value) == shown


def test_the_users_own_patterns() -> None:
    redactor = Redactor([r"ACME-\d+", "(", "(a+)+b", r"x*"])
    assert redactor.text("id ACME-12345 ok") == f"id {REDACTED} ok"
    assert redactor.found == 1
    assert ["not a regular expression" in warning or "repeats what repeats" in warning for warning in redactor.warnings] == [True, True]


@pytest.mark.parametrize("text", ["a", "password", "=", "eyJ", "eyJ.", "://:", "-----BEGIN PRIVATE KEY-----", "token:", "a.b-", "bearer ", "xoxb-"])
def test_it_takes_linear_time(text: str) -> None:
    times = []
    for length in (40_000, 160_000):
        started = time.process_time()
        Redactor().text(text * (length // len(text)))
        times.append(time.process_time() - started)
    assert times[1] < 8 * max(times[0], 0.05)
