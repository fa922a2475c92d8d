"""Checking receipts in files: each for itself, and where it stands in a trace, whether the two say the same."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from mcpgym.errors import ConfigurationError
from mcpgym.receipts import (
    MAX_CLAIM,
    Receipt,
    ReceiptRejected,
    calls_hash,
    canonical,
    check_line,
    check_receipt,
    content_hash,
)
from mcpgym.signing_keys import PublicKey
from mcpgym_clients.files import RECEIPTS, TRACES
from mcpgym_clients.runs import walked
from mcpgym_rl.traces import Trace

MAX_LINE = 64 * 1024 * 1024
"""Bytes of a line beyond which it is not read: no trace is so long, and no receipt."""
REFUSED = "this episode has ended"
"""How the answer begins to a call that came after the end; such calls are in no log."""


@dataclass(frozen=True, slots=True)
class Checked:
    """One line of a file. ``problem`` says why it is rejected; a trace that has no score, or is incomplete because its
    run was killed, has neither it nor a receipt.

    ``where`` names file and line, and ``trace`` is the trace that the receipt belongs to, where it stands in one.
    """

    where: str
    receipt: Receipt | None = None
    problem: str | None = None
    trace: Trace | None = None


def trusted_keys(given: Iterable[str]) -> dict[str, PublicKey]:
    """The public keys that were named on a command line, by id; this user's own where none were.

    Raises:
        ConfigurationError: one is no public key; or none was given and this user has none.
    """
    from mcpgym.signing_keys import default_key_path, load_signing_key, read_public_key

    keys = {key.id: key for key in map(read_public_key, given)}
    if keys:
        return keys
    path = default_key_path()
    if path is None or not path.exists():
        raise ConfigurationError("whose receipts? Give the server's public key: --key ed25519:… (mcpgym key shows it)")
    own = load_signing_key(path).public
    return {own.id: own}


def receipt_files(paths: Iterable[Path], *, traces_too: bool) -> list[Path]:
    """The files that hold receipts, in each of ``paths`` and below; a path that is a file stands for itself.

    Args:
        paths: what was named.
        traces_too: take the traces of a folder also where it has its receipts in a file of their own.

    Raises:
        UsageProblem: there is no such path.
    """
    found: dict[Path, None] = {}
    for path, files in walked(paths):
        if files is None:
            found[path] = None
            continue
        names = [name for name in (RECEIPTS, TRACES) if name in files and (path / name).is_file()]
        found |= dict.fromkeys(path / name for name in (names if traces_too else names[:1]))
    return list(found)


def check_file(path: Path, keys: Mapping[str, PublicKey]) -> Iterator[Checked]:
    """Every line of a file of receipts, or of traces, checked; one at a time, whatever the file's size.

    Raises:
        ConfigurationError: it cannot be read.
    """
    traces: bool | None = True if path.name == TRACES else False if path.name == RECEIPTS else None
    try:
        with path.open("rb") as file:
            for number, line in enumerate(iter(lambda: file.readline(MAX_LINE), b""), 1):
                if traces is None:
                    traces = b'"mcpgym.trace/' in line and b'"messages"' in line
                yield (_trace_line if traces else _receipt_line)(f"{path}, line {number}", line, keys)
                if len(line) == MAX_LINE:
                    yield Checked(f"{path}, line {number}", problem="the line is too long to be read")
                    return
    except OSError as error:
        raise ConfigurationError(f"{path} cannot be read: {error.strerror}") from None


def _receipt_line(where: str, line: bytes, keys: Mapping[str, PublicKey]) -> Checked:
    try:
        if not line.endswith(b"\n"):
            raise ReceiptRejected("the line does not end: something is cut off, or was changed")
        return Checked(where, check_line(line[:-1], keys))
    except ReceiptRejected as problem:
        return Checked(where, problem=str(problem))


def _trace_line(where: str, line: bytes, keys: Mapping[str, PublicKey]) -> Checked:
    try:
        trace = Trace.from_dict(json.loads(line, object_pairs_hook=_once))
    except (ValueError, RecursionError) as error:
        if not line.endswith(b"\n"):
            return Checked(where)
        return Checked(where, problem=f"it is no JSON: {str(error)[:100]}")
    except ConfigurationError as error:
        return Checked(where, problem=f"it is no trace: {error}")
    if trace.score is None:
        return Checked(where, trace=trace)
    try:
        return Checked(where, check_trace(trace, keys), trace=trace)
    except ReceiptRejected as problem:
        return Checked(where, problem=str(problem), trace=trace)
    except RecursionError:
        return Checked(where, problem="it is nested too deeply to be a trace of ours", trace=trace)


def _once(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    """An object none of whose names stands there twice: who reads the first of two reads another trace."""
    made = dict(pairs)
    if len(made) != len(pairs):
        raise ValueError("an object has the same name twice")
    return made


def check_trace(trace: Trace, keys: Mapping[str, PublicKey]) -> Receipt:
    """The receipt of a trace's score, if the trace says what the receipt says.

    Raises:
        ReceiptRejected: there is none, it is not to be believed, or it belongs to something else.
    """
    if trace.score is None or trace.score.receipt is None:
        raise ReceiptRejected("its score is not signed")
    receipt = check_receipt(trace.score.receipt, keys)
    if problems := disagreements(trace, receipt.statement):
        raise ReceiptRejected("its receipt is of something else: " + "; ".join(problems))
    return receipt


def disagreements(trace: Trace, signed: Mapping[str, Any]) -> list[str]:
    """What a trace says otherwise than the statement that was signed of it; empty where all agrees."""
    same = ("environment", "environment_version", "task", "split", "seed", "config", "schema_hash")
    found = [_differs(name, getattr(trace, name), signed[name]) for name in same]
    found.append(_differs("conditions", trace.conditions, signed.get("conditions", {})))
    if trace.score is not None:
        parts = ("total", "components", "game_outcome")
        found += [_differs(f"score.{name}", getattr(trace.score, name), signed[name]) for name in parts]
    if "policy" in signed["claims"]:
        found.append(_differs("policy", trace.policy[:MAX_CLAIM], signed["claims"]["policy"]))
    return [*filter(None, found), *_calls(trace, signed["calls"]), *_messages(trace, signed["transcript"])]


def signed_calls(trace: Trace, count: int) -> str:
    """The hash of the first ``count`` calls of a trace, as a server makes it of its log."""
    return calls_hash((call.name, call.arguments, call.result, call.is_error) for call in trace.calls[:count])


def _calls(trace: Trace, signed: Mapping[str, Any]) -> Iterator[str]:
    count = signed.get("count")
    if type(count) is not int or count > len(trace.calls):
        yield f"it has {len(trace.calls)} calls, and the server logged {_shown(count)}"
    elif not all(isinstance(call.name, str) for call in trace.calls):
        yield "its calls are none: a call has a name"
    elif signed_calls(trace, count) != signed.get("hash"):
        yield "its calls are not those that the server logged"
    else:
        for place, call in enumerate(trace.calls[count:], count):
            if not call.is_error or not str(call.result).startswith(REFUSED):
                yield f"the server logged {count} calls; calls[{place}] is none of them"
                return


def _messages(trace: Trace, signed: str | None) -> Iterator[str]:
    if signed is None:
        yield "the server was shown no transcript, and the trace has one"
    elif content_hash(list(trace.messages)) != signed:
        yield "its messages are not those that the server was shown"


def _differs(name: str, mine: Any, signed: Any) -> str | None:
    if canonical(mine) == canonical(signed):
        return None
    return f"{name} is {_shown(mine)}, and {_shown(signed)} was signed"


def _shown(value: Any) -> str:
    text = canonical(value).decode()
    return text if len(text) <= 80 else f"{text[:79]}…"
