"""A canary is known again in every form that the scan claims to know, and nothing else is taken for one."""

from __future__ import annotations

import base64
import codecs
import gzip
import hashlib
import html
import json
import string
import struct
import zlib
from collections.abc import Callable
from urllib.parse import quote

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from mcpgym_clients.scanning.canaries import Canaries, Canary, Kind, Value
from mcpgym_clients.scanning.forms import forms, views
from mcpgym_clients.scanning.record import Exchange, Recording, texts_of
from mcpgym_clients.scanning.report import ScanReport
from mcpgym_clients.scanning.search import Needles, search

MAKE = Canaries(7)
TEXT, NUMBER, SHARE = MAKE.text("a"), MAKE.integer("b"), MAKE.share("c")
KEY = MAKE.integer("d").to_bytes(8, "big")
WORDS = ("zero", "one", "two", "three", "four", "five", "six", "seven", "eight", "nine")

WRITTEN: dict[str, tuple[Value, Callable[[], str]]] = {
    "as it is": (TEXT, lambda: f"it is {TEXT}."),
    "upper case": (TEXT, TEXT.upper),
    "spaced": (TEXT, lambda: " ".join(TEXT)),
    "over lines": (TEXT, lambda: "\n- ".join(TEXT)),
    "backwards": (TEXT, lambda: TEXT[::-1]),
    "half of it": (TEXT, lambda: f"{TEXT[:12]}…"),
    "the other half": (TEXT, lambda: f"…{TEXT[12:]}"),
    "full width": (TEXT, lambda: "".join(chr(ord(c) + 0xFEE0) for c in TEXT)),
    "tag characters": (TEXT, lambda: "hello" + "".join(chr(0xE0000 + ord(c)) for c in TEXT)),
    "zero-width bits": (TEXT, lambda: "a" + "".join("\u200b\u200d"[int(b)] for c in TEXT for b in f"{ord(c):08b}")),
    "other zero-width bits": (TEXT, lambda: "".join("\u200d\u200b"[int(b)] for c in TEXT for b in f"{ord(c):08b}")),
    "base64": (TEXT, lambda: base64.b64encode(TEXT.encode()).decode()),
    "base64 after one": (TEXT, lambda: base64.b64encode(f"x{TEXT}yy".encode()).decode()),
    "base64 after two": (TEXT, lambda: base64.b64encode(f"xy{TEXT}z".encode()).decode()),
    "url-safe base64": (TEXT, lambda: base64.urlsafe_b64encode(f"??>{TEXT}".encode()).decode().rstrip("=")),
    "base64 twice": (TEXT, lambda: base64.b64encode(base64.b64encode(f"q {TEXT}".encode())).decode()),
    "base64 of JSON": (TEXT, lambda: base64.b64encode(json.dumps({"a": [TEXT]}).encode()).decode()),
    "base32": (TEXT, lambda: base64.b32encode(TEXT.encode()).decode()),
    "hexadecimal": (TEXT, lambda: TEXT.encode().hex()),
    "hexadecimal with colons": (TEXT, lambda: TEXT.encode().hex(":").upper()),
    "zlib": (TEXT, lambda: base64.b64encode(zlib.compress(TEXT.encode())).decode()),
    "gzip in hexadecimal": (TEXT, lambda: gzip.compress(TEXT.encode()).hex()),
    "JSON in JSON": (TEXT, lambda: json.dumps(json.dumps({"x": "".join(f"\\u{ord(c):04x}" for c in TEXT)}))),
    "percent": (TEXT, lambda: "".join(f"%{ord(c):02X}" for c in TEXT)),
    "percent twice": (TEXT, lambda: quote("".join(f"%{ord(c):02x}" for c in TEXT))),
    "HTML": (TEXT, lambda: "".join(f"&#x{ord(c):x};" for c in TEXT)),
    "HTML twice": (TEXT, lambda: html.escape("".join(f"&#{ord(c)};" for c in TEXT))),
    "Python escapes": (TEXT, lambda: "".join(f"\\x{ord(c):02x}" for c in TEXT)),
    "rot13": (TEXT, lambda: codecs.encode(TEXT, "rot13")),
    "character codes": (TEXT, lambda: str([ord(c) for c in TEXT])),
    "bits": (TEXT, lambda: " ".join(f"{ord(c):08b}" for c in TEXT)),
    "md5": (TEXT, lambda: hashlib.md5(TEXT.encode()).hexdigest()),
    "sha256": (TEXT, lambda: hashlib.sha256(TEXT.encode()).hexdigest()[:20]),
    "sha1 in base64": (TEXT, lambda: base64.b64encode(hashlib.sha1(TEXT.encode()).digest()).decode()),
    "decimal": (NUMBER, lambda: f"seed={NUMBER}"),
    "thousands": (NUMBER, lambda: f"{NUMBER:,}"),
    "negative": (NUMBER, lambda: str(-NUMBER)),
    "hexadecimal number": (NUMBER, lambda: hex(NUMBER).upper()),
    "octal": (NUMBER, lambda: oct(NUMBER)),
    "binary": (NUMBER, lambda: f"{NUMBER:_b}"),
    "scientific": (NUMBER, lambda: repr(float(NUMBER))),
    "number backwards": (NUMBER, lambda: str(NUMBER)[::-1]),
    "words": (NUMBER, lambda: " ".join(WORDS[int(c)] for c in str(NUMBER))),
    "little endian": (NUMBER, lambda: base64.b64encode(NUMBER.to_bytes(8, "little")).decode()),
    "big endian": (NUMBER, lambda: NUMBER.to_bytes(8, "big").hex(" ")),
    "sha256 of the digits": (NUMBER, lambda: hashlib.sha256(str(NUMBER).encode()).hexdigest()),
    "share": (SHARE, lambda: f"reward {SHARE}"),
    "rounded share": (SHARE, lambda: f"{SHARE:.9f}"),
    "shorter share": (SHARE, lambda: f"{SHARE:.10f}"),
    "percentage": (SHARE, lambda: f"{SHARE * 100:.8f} %"),
    "exponent": (SHARE, lambda: f"{SHARE:.12e}"),
    "double": (SHARE, lambda: base64.b64encode(struct.pack("<d", SHARE)).decode()),
    "bytes": (KEY, lambda: f"Opponent(key={KEY!r})"),
    "bytes as a number": (KEY, lambda: str(int.from_bytes(KEY, "little"))),
    "bytes in base64": (KEY, lambda: base64.b64encode(KEY).decode()),
}


def found(value: Value, text: str) -> list[str]:
    return [form for _, form in Needles([Canary(Kind.INFO, "it", value)]).found_in(text)]


@pytest.mark.parametrize("form", WRITTEN)
def test_a_canary_is_found_in_this_form(form: str) -> None:
    value, write = WRITTEN[form]
    text = write()
    assert found(value, text), text
    assert found(value, f"before, {text} and after"), text


@pytest.mark.parametrize("form", [form for form in WRITTEN if "half" not in form])
def test_another_canary_in_this_form_is_not_taken_for_it(form: str) -> None:
    value, write = WRITTEN[form]
    other = Canaries(8)
    unlike: dict[type, Value] = {
        str: other.text("a"),
        int: other.integer("b"),
        float: other.share("c"),
        bytes: other.integer("d").to_bytes(8, "big"),
    }
    assert found(unlike[type(value)], write()) == []


@settings(max_examples=60, deadline=None)
@given(st.text(max_size=400), st.integers(0, 2**64), st.floats(allow_nan=False))
def test_nothing_is_found_where_nothing_is(text: str, number: int, share: float) -> None:
    canaries = Canaries(number)
    for value in (canaries.text("x"), canaries.integer("x"), canaries.share("x")):
        assert found(value, f"{text} {number} {share} {json.dumps(text)} {text.encode().hex()}") == []


@settings(max_examples=60, deadline=None)
@given(st.text(alphabet=string.printable, max_size=60), st.text(alphabet=string.printable, max_size=60))
def test_a_canary_is_found_whatever_stands_around_it(before: str, after: str) -> None:
    assert found(TEXT, before + TEXT + after)
    assert found(TEXT, json.dumps({"a": [before, {"b": TEXT}, after]}))


@pytest.mark.parametrize("value", ["short", 12, 0.5, 1.0, b"abc", ""])
def test_what_could_be_there_by_chance_is_not_looked_for_as_it_is(value: Value) -> None:
    assert "as it is" not in forms(value).values()
    assert "in decimal" not in forms(value).values()


@settings(max_examples=40, deadline=None)
@given(st.binary(max_size=300))
def test_any_bytes_can_be_looked_through(raw: bytes) -> None:
    list(views(raw.decode("utf-8", "replace")))
    list(texts_of(raw))
    list(texts_of(b"HTTP/1.1 200 OK\r\nx: y\r\n\r\n" + raw))


def test_a_bomb_is_not_unpacked_whole() -> None:
    bomb = base64.b64encode(zlib.compress(b"0" * 20_000_000, 9)).decode()
    assert sum(len(view) for _, view in views(bomb)) < 4_000_000


def test_headers_members_their_names_and_nested_json_are_all_looked_at() -> None:
    inner = json.dumps({"deep": TEXT})
    answer = b"HTTP/1.1 200 OK\r\nX-Odd: value\r\n\r\n" + json.dumps({"a": {"b": [1.5, inner]}, TEXT: None}).encode()
    paths = dict(texts_of(answer))
    assert paths["header x-odd"] == "value"
    assert paths["$.a.b[0]"] == "1.5"
    assert paths["$.a.b[1]→.deep"] == TEXT
    assert TEXT in [text for path, text in texts_of(answer) if path.endswith("member name")]


def test_events_of_a_stream_are_looked_at_one_by_one() -> None:
    body = b'HTTP/1.1 200 OK\r\n\r\nevent: message\r\ndata: {"a": "b"}\r\n\r\ndata: {"c": "d"}\r\n\r\n'
    assert {("$.a", "b"), ("$.c", "d")} <= set(texts_of(body))


def searched(*exchanges: Exchange, owner: str = "") -> ScanReport:
    recording, report = Recording(), ScanReport("x")
    for exchange in exchanges:
        recording.add(exchange)
    search(recording, [Canary(Kind.OTHER, "a word", TEXT, owner)], report)
    return report


def test_what_the_asker_said_himself_is_no_leak() -> None:
    echo = b'{"error": "no tool ' + TEXT.encode() + b'"}'
    assert searched(Exchange("c", "a", echo, "me", sent=f'{{"name": "{TEXT.upper()}"}}'.encode())).ok
    assert not searched(Exchange("c", "a", echo, "me", sent=b"{}")).ok


def test_an_episode_may_see_what_is_its_own_and_no_other_may() -> None:
    text = TEXT.encode()
    assert searched(Exchange("c", "a", text, "me"), owner="me").ok
    assert searched(Exchange("c", "a", text, "me"), Exchange("c", "b", text, "you"), owner="me").kinds() == {
        "other episode"
    }


def test_the_same_leak_in_one_channel_is_told_once_and_counted() -> None:
    report = searched(*(Exchange("c", "a", f"{number} {TEXT}".encode()) for number in range(9)))
    (finding,) = report.findings
    assert finding.times >= 9
