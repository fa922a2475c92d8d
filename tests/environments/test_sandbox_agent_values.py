"""What a function returns comes back as the same value of the same types, or is said to be no JSON."""

from __future__ import annotations

import json
import math
from typing import Any

import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from sandbox_agents import BOTH, INSIDE, with_session

from mcpgym_environments.python_sandbox.jail import frames
from mcpgym_environments.python_sandbox.jail.values import MOST_BYTES, MOST_DEPTH, NotExact, exact_json
from mcpgym_environments.python_sandbox.sessions.session import MISSING, Evaluation, Session

VALUES = st.recursive(
    st.none()
    | st.booleans()
    | st.integers()
    | st.integers(min_value=-(10**4000), max_value=10**4000)
    | st.floats(allow_nan=False, allow_infinity=False)
    | st.text()
    | st.text(st.characters(categories=["Cs", "Cc", "Lu"])),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(), inner, max_size=4),
    max_leaves=10,
)


def same(one: Any, other: Any) -> bool:
    """Equal, of the same types all through, and with signs of zeros."""
    if type(one) is not type(other):
        return False
    if isinstance(one, list):
        return len(one) == len(other) and all(map(same, one, other))
    if isinstance(one, dict):
        return list(one) == list(other) and all(same(one[name], other[name]) for name in one)
    return bool(one == other and (not isinstance(one, float) or math.copysign(1, one) == math.copysign(1, other)))


@given(VALUES)
@example("\ud800\udc00")
@example({"\ud800\udc00": 1, "\U00010000": 2})
@example("\udc00\ud800")
def test_a_value_reads_back_the_same_or_is_said_not_to(value: Any) -> None:
    if not same(json.loads(json.dumps(value)), value):
        with pytest.raises(NotExact, match="the two halves of a surrogate pair"):
            exact_json(value)
    else:
        assert same(frames.parsed(exact_json(value)), value)


class Text(str):
    """A text that is none of Python's own."""


class Number(int):
    """A number likewise."""


CIRCLE: list[Any] = []
CIRCLE.append(CIRCLE)
DEEP: list[Any] = []
for _ in range(MOST_DEPTH):
    DEEP = [DEEP]


@pytest.mark.parametrize(
    ("value", "words"),
    [
        ((1, 2), "tuple"),
        ({1, 2}, "set"),
        (b"x", "bytes"),
        (1j, "complex"),
        (Text("x"), "Text"),
        (Number(1), "Number"),
        ({1: 2}, "dict with a key of type int"),
        ({Text("a"): 2}, "dict with a key of type Text"),
        ({None: 2}, "dict with a key of type NoneType"),
        (math.nan, "nan"),
        (-math.inf, "-inf"),
        (10**4300, "an int of more than 4300 digits"),
        (-(10**4300), "an int of more than 4300 digits"),
        (1 << 10**6, "an int of more than 4300 digits"),
        ([[object()]], "object"),
        (range(3), "range"),
        (CIRCLE, f"more than {MOST_DEPTH} levels"),
        (DEEP, f"more than {MOST_DEPTH} levels"),
        ("x" * MOST_BYTES, f"more than {MOST_BYTES} bytes"),
        (["x"] * MOST_BYTES, f"more than {MOST_BYTES} bytes"),
        ("\0" * (MOST_BYTES // 5), f"more than {MOST_BYTES} bytes"),
    ],
    ids=lambda value: ascii(value)[:20] if isinstance(value, str) else type(value).__name__,
)
def test_what_json_would_change_or_cannot_hold_is_refused(value: Any, words: str) -> None:
    with pytest.raises(NotExact) as caught:
        exact_json([value])
    assert str(caught.value) == words


def test_the_largest_that_go() -> None:
    for value in ("x" * (MOST_BYTES - 2), 10**4300 - 1, -(10**4300) + 1, DEEP[0], ["x" * 99] * (MOST_BYTES // 102 - 1)):
        assert same(json.loads(exact_json(value)), value)


def evaluated(code: str, function: str, *arguments: Any, backend: str = INSIDE) -> Evaluation:
    """What a function gives that some code defines."""

    async def act(session: Session) -> Evaluation:
        ran = await session.run(code)
        assert ran.status == "ok", ran.output.decode()
        return await session.evaluate(function, list(arguments))

    return with_session(act, backend)


@BOTH
def test_arguments_and_values_keep_their_types(backend: str) -> None:
    values = [True, 1, 1.0, -0.0, 10**30, "é\0\ud800", None, [], {}, {"b": [False, 0], "a": 0.1}]
    found = evaluated("def f(*values):\n    return [*values, [type(v).__name__ for v in values]]", "f", *values)
    assert found.outcome.status == "ok"
    assert same(found.value, [*values, [type(value).__name__ for value in values]])
    assert evaluated("import math", "math.gcd", 12, 18, backend=backend).value == 6
    assert evaluated("", "math.gcd", 12, 18, backend=backend).value == 6
    assert evaluated("class A:\n    def b(self, x): return x\na = A()", "a.b", [1], backend=backend).value == [1]
    assert evaluated("f = lambda: None", "f", backend=backend).value is None


def test_what_is_printed_is_shown_unless_it_went_well() -> None:
    assert evaluated("def f():\n    print('a')\n    return 1", "f").outcome.output == b""
    failed = evaluated("def f(x):\n    print('a')\n    return 1 / x", "f", 0)
    assert failed.value is MISSING
    assert failed.outcome.status == "error"
    assert failed.outcome.why is None
    assert failed.outcome.output == (
        b'a\nTraceback (most recent call last):\n  File "<cell 1>", line 3, in f\n    return 1 / x\n'
        b"ZeroDivisionError: division by zero\n"
    )


@pytest.mark.parametrize(
    ("code", "function", "why", "last"),
    [
        ("f = lambda: (1, 2)", "f", "not JSON: tuple", b""),
        ("f = lambda: float('nan')", "f", "not JSON: nan", b""),
        ("class L(list): ...\nf = L", "f", "not JSON: L", b""),
        ("class M(type):\n    __name__ = 'int'\nclass X(metaclass=M): ...\nf = X", "f", "not JSON: X", b""),
        ("", "g", None, b"NameError: name 'g' is not defined\n"),
        ("f = 5", "f", None, b"TypeError: 'int' object is not callable\n"),
        ("f = 5", "f.g", None, b"AttributeError: 'int' object has no attribute 'g'\n"),
        ("", "no_such.f", None, b"ModuleNotFoundError: No module named 'no_such'\n"),
        ("def f(x): ...", "f", None, b"TypeError: f() missing 1 required positional argument: 'x'\n"),
        ("def f(): raise SystemExit(0)", "f", "it ended by sys.exit", b""),
        ("def f(): raise SystemExit('no')", "f", None, b"SystemExit: no\n"),
    ],
    ids=lambda text: repr(text)[:24],
)
def test_what_is_no_value_is_an_error(code: str, function: str, why: str | None, last: bytes) -> None:
    found = evaluated(code, function)
    assert (found.value, found.outcome.status, found.outcome.why) == (MISSING, "error", why)
    assert found.outcome.output.endswith(last)


@pytest.mark.parametrize(
    ("code", "status", "why"),
    [
        ("def f():\n    while True: pass", "timeout", "timeout"),
        ("import os\ndef f(): os._exit(0)", "crashed", "exit 0"),
        (
            "class D(dict):\n    def __iter__(self): return iter(['a'])\n    def __len__(self): return 1\nf = D",
            "error",
            "not JSON: D",
        ),
    ],
    ids=["loop", "exit", "dict"],
)
def test_a_function_cannot_end_as_it_likes(code: str, status: str, why: str) -> None:
    async def act(session: Session) -> None:
        await session.run(code)
        found = await session.evaluate("f", [], 0.2)
        assert (found.value, found.outcome.status, found.outcome.why) == (MISSING, status, why)
        await session.run("def f(): return 'again'")
        assert (await session.evaluate("f", [])).value == "again"

    with_session(act, INSIDE)


def test_json_that_code_writes_itself_is_read_as_strictly() -> None:
    code = """
import os, struct
def reply(value, status=0):
    os.write(3, struct.pack(">BIII", status, {call}, 0, len(value)) + value)
    while True: pass
def nan(): reply(b"[NaN]")
def half(): reply(b"[1")
def deep(): reply(b"[" * 100000)
def fine(): reply(b"[1]")
"""

    async def act(session: Session) -> list[Any]:
        found = []
        for name in ("nan", "half", "deep", "fine"):
            await session.reset()
            await session.run(code.replace("{call}", "2"))
            evaluation = await session.evaluate(name, [])
            found.append((evaluation.outcome.status, evaluation.value))
        return found

    *bad, fine = with_session(act, INSIDE)
    assert bad == [("error", MISSING)] * 3
    assert fine == ("ok", [1])  # code may say what it likes of itself, as a function that returns it may
