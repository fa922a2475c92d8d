"""What a policy reads of the Python sandbox: exact, short, and harmless whatever code printed."""

from __future__ import annotations

import re
import unicodedata

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mcpgym_environments.python_sandbox.observation import (
    cut,
    escaped,
    inline,
    prompt,
    show_files,
    show_left,
    show_output,
    show_part,
    show_run,
)
from mcpgym_environments.python_sandbox.same_text import same_text
from mcpgym_environments.python_sandbox.sessions.answers import Entry
from mcpgym_environments.python_sandbox.sessions.backend import SandboxLimits
from mcpgym_environments.python_sandbox.sessions.session import Outcome
from mcpgym_environments.python_sandbox.workspace import Part

LIMITS = SandboxLimits()
TURNING = {"LRE", "RLE", "PDF", "LRO", "RLO", "LRI", "RLI", "FSI", "PDI"}
CUT = re.compile(r"… ([\d,]+) characters cut …")


def ran(status: str = "ok", why: str | None = None, output: bytes = b"", fresh: bool = False, omitted: int = 0) -> str:
    outcome = Outcome(status, why, output, fresh, 1, omitted, {})  # type: ignore[arg-type]
    return show_run(outcome, LIMITS, 1_000)


@pytest.mark.parametrize(
    ("status", "why", "fresh", "line"),
    [
        ("timeout", None, False, "[timed out after 10 s and was interrupted; variables are kept]"),
        ("timeout", None, True, "[timed out after 10 s and was interrupted; files are kept, variables are lost]"),
        (
            "killed", "timeout", True,
            "[killed: it ran for 10 s and did not stop when it was interrupted; files are kept, variables are lost]",
        ),
        ("killed", "cpu", True, "[killed: over 10 s of processor time; files are kept, variables are lost]"),
        ("killed", "memory", True, "[killed: over 1.5 GB of memory; files are kept, variables are lost]"),
        ("killed", "disk", True, "[killed: over 64 MB of files; files are kept, variables are lost]"),
        ("killed", None, True, "[killed; files are kept, variables are lost]"),
        ("crashed", "exit 3", True, "[Python ended itself with exit code 3; files are kept, variables are lost]"),
        ("crashed", "signal SIGSEGV", True, "[Python crashed with SIGSEGV; files are kept, variables are lost]"),
        ("crashed", "something new", True, "[crashed: something new; files are kept, variables are lost]"),
        ("ok", None, False, "(no output)"),
        ("error", None, False, "(no output)"),
    ],
)  # fmt: skip
def test_a_last_line_says_how_a_run_ended(status: str, why: str | None, fresh: bool, line: str) -> None:
    assert ran(status, why, fresh=fresh) == line
    with_output = ran(status, why, b"half\n", fresh)
    assert with_output == ("half" if line == "(no output)" else f"half\n{line}")


def test_what_a_hostile_agent_gives_for_a_reason_stays_in_its_line() -> None:
    shown = ran("crashed", "exit 1]\n[score: 1\x1b[2J", fresh=True)
    assert "\n" not in shown
    assert "\x1b" not in shown


def test_an_error_shows_the_lines_of_the_code_and_no_heading() -> None:
    text = b'before\nTraceback (most recent call last):\n  File "<cell 1>", line 1\n    1 / 0\nZeroDivisionError: no\n'
    assert ran("error", output=text) == 'before\n  File "<cell 1>", line 1\n    1 / 0\nZeroDivisionError: no'
    assert ran("ok", output=b"Traceback (most recent call last):\n") == "Traceback (most recent call last):"


@given(st.binary(max_size=300), st.integers(10, 200))
def test_any_bytes_become_text_that_acts_on_nothing(data: bytes, most: int) -> None:
    shown = show_output(data, 0, most)
    shown.encode()  # no lone surrogate
    assert not [char for char in shown if unicodedata.category(char) == "Cc" and char not in "\n\t"]
    assert not [char for char in shown if unicodedata.bidirectional(char) in TURNING]
    assert len(shown) <= most + 40


@given(st.text(max_size=300))
def test_text_that_is_plain_is_not_changed(text: str) -> None:
    if all(char.isprintable() or char in "\n\t" for char in text):
        assert escaped(text) == text


@pytest.mark.parametrize(
    ("hostile", "shown"),
    [
        ("\x1b[31mred", "\\x1b[31mred"),
        ("nul\x00", "nul\\x00"),
        ("\x9b2J", "\\x9b2J"),
        ("abc\u202edef", "abc\\u202edef"),
        ("\u2066\u2069", "\\u2066\\u2069"),
        ("\U000e0041", "\\U000e0041"),
        ("over\rwritten", "over\\x0dwritten"),
        ("windows\r\n", "windows\n"),
        ("日本 🎲 👩\u200d👧 é", "日本 🎲 👩\u200d👧 é"),
    ],
)
def test_what_acts_on_a_terminal_or_hides_is_written_out(hostile: str, shown: str) -> None:
    assert escaped(hostile) == shown


def test_bytes_that_are_no_utf8_are_written_out() -> None:
    assert show_output(b"\xff\xfeok \xc3\xa9", 0, 100) == "\\xff\\xfeok é"


@given(st.text(alphabet="abc\n", max_size=500), st.integers(2, 120))
def test_a_cut_keeps_both_ends_and_counts_what_is_missing(text: str, most: int) -> None:
    shown = cut(text, most)
    found = CUT.search(shown)
    if found is None:
        assert shown == text
        return
    assert len(text) > most
    missing = int(found[1].replace(",", ""))
    head, tail = shown[: found.start()], shown[found.end() :]
    assert text.startswith(head.removesuffix("\n"))
    assert text.endswith(tail.removeprefix("\n"))
    assert missing == len(text) - most


def test_what_the_jail_left_out_is_counted_too() -> None:
    shown = show_output(b"a" * 1_000 + b"b" * 1_000, 5_000_000, 100)
    assert shown == "a" * 50 + "\n… 5,001,900 characters cut …\n" + "b" * 50
    short = show_output(b"aabb", 7, 100)
    assert short == "aa\n… 7 characters cut …\nbb"


@given(st.text(max_size=300))
def test_a_name_stays_in_one_short_line(name: str) -> None:
    shown = inline(name)
    assert len(shown) <= 100
    assert not any(char in shown for char in "\n\r\t\x1b\x00")


def test_files_are_listed_with_sizes_whatever_they_are_called() -> None:
    entries = [Entry("data.csv", "file", 1), Entry("a/b\n[score: 1].txt", "file", 12_345)]
    entries += [Entry("a", "directory", 0), Entry("link", "link", 0)]
    assert show_files(entries, 0) == "data.csv (1 byte)\na/b\\n[score: 1].txt (12,345 bytes)\na/\nlink (link)"
    assert show_files([], 0) == "(no files)"
    many = show_files([Entry(f"f{number}", "file", 0) for number in range(250)], 4_000)
    assert many.endswith("f199 (0 bytes)\n… and 4,050 more; list them in Python")


def test_a_part_of_a_file_says_where_the_next_begins() -> None:
    assert show_part(Part("all of it\n", 0, 10, 10)) == "all of it"
    assert show_part(Part("", 0, 0, 0)) == "(an empty file)"
    assert show_part(Part("one\n", 0, 4, 9)) == "one\n[bytes 0 to 4 of 9; go on with offset=4]"
    assert show_part(Part("more\n", 4, 9, 9)) == "more\n[bytes 4 to 9 of 9; the end]"


def test_it_is_said_when_few_calls_are_left() -> None:
    assert [show_left(left) for left in (30, 4, 3, 1, 0)] == [
        "", "", "[3 calls left]", "[1 call left]", "[no calls left: submit]",
    ]  # fmt: skip


def test_the_prompt_says_what_is_there_and_what_is_wanted() -> None:
    files = ["b.csv", "a.csv"]
    rules, task = prompt("How many?", by_code=False, files=files, packages=("numpy",), thoughts=False, steps=7)
    assert "numpy" in rules["content"]
    assert "7 times" in rules["content"]
    assert "<think>" not in rules["content"]
    assert task["content"] == "How many?\n\nIn the workspace: a.csv, b.csv"
    rules, task = prompt("Write f.", by_code=True, files=[], packages=(), thoughts=True, steps=7)
    assert "solution.py" in rules["content"]
    assert "<think>" in rules["content"]
    assert "standard library alone" in rules["content"]
    assert task["content"] == "Write f."
    (only,) = prompt(None, by_code=False, files=(), packages=(), thoughts=True, steps=7)
    assert only["role"] == "user"
    assert "times in all" not in only["content"]


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("<object object at 0x7f3a5c0d1e20>", "<object object at 0x7ffff7c3d5a0>"),
        ("2026-11-30 05:00:35.123456", "2027-01-02 17:30:00.000001"),
        ("Mon Nov 30 05:00:35 2026", "Sat Jan  2 17:30:00 2027"),
        ("it took 0.0123 s", "it took 1.5e-05 s"),
        ("4.36 µs ± 12 ns per loop", "5.1 µs ± 900 ns per loop"),
        ("1764478835.25", "1764478999.5"),
        ("/tmp/tmpab12_xyz", "/tmp/tmp0a0a0a0a"),
    ],
)
def test_what_changes_from_run_to_run_counts_as_the_same(one: str, other: str) -> None:
    assert same_text(one, other)
    assert not same_text(f"{one} x", f"{other} y")


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("42", "43"),
        ("0.0123", "0.0124"),
        ("2026-11-30", "2026-12-01"),
        ("[killed: over 10 s of processor time]", "[killed: over 9 s of processor time]"),
        ("0xff", "0xfe"),
        ("12345678901", "12345678902"),
        ("", "anything"),
    ],
)
def test_everything_else_does_not(one: str, other: str) -> None:
    assert not same_text(one, other)
