"""JSON-RPC as it should not be: batches, odd ids, broken JSON, other encodings. None of it may make a server talk."""

from __future__ import annotations

import gzip
import json
import re
from collections.abc import Iterator

from mcpgym_clients.scanning.attacks.target import ERAS, Target
from mcpgym_clients.scanning.raw_http import Answer
from mcpgym_clients.scanning.search import excerpt
from mcpgym_clients.scanning.wires import envelope, mcp_headers

ATTACK = "malformed requests"
FIX = "answer what cannot be read with a fixed text and a status below 500; write the exception to the log"
INNARDS = re.compile(
    r"Traceback \(most recent call last\)|File \"[^\"]+\.py\", line \d+|/site-packages/|<[\w.]+ object at 0x[0-9a-f]+>"
)

_XML = b"<?xml version='1.0'?><!DOCTYPE x [<!ENTITY e SYSTEM 'file:///etc/passwd'>]><x>&e;</x>"


async def attack_malformed(target: Target) -> None:
    """Send each of them; a failure of the server, or a look into its inside, is a finding."""
    for era in ERAS:
        headers = mcp_headers("tools/list", {}, era)
        for what, body, more in _bodies(era):
            answer = await target.ask(ATTACK, what, headers={**headers, **more}, body=body)
            text = answer.raw.decode("utf-8", "replace")
            if INNARDS.search(text):
                _tell(target, f"the inside of the server shows after {what}", what, text, answer)
            elif answer.status >= 500:
                _tell(target, f"the server fails ({answer.status}) on {what}", what, text, answer)
    if not await target.still_answers():
        target.report.add("crash", "the server is gone after these", f"attack: {ATTACK}", "", "", "no answer", FIX)


def _bodies(era: str) -> Iterator[tuple[str, bytes, dict[str, str]]]:
    meta = {"_meta": envelope()}
    plain = {"jsonrpc": "2.0", "id": 1, "method": "tools/list", "params": meta}
    deep = b"[" * 50_000 + b"]" * 50_000
    score = {**plain, "method": "score"}
    yield from (
        ("an empty body", b"", {}),
        ("a batch", json.dumps([plain, {**score, "id": 2}]).encode(), {}),
        ("an empty batch", b"[]", {}),
        ("a nested batch", json.dumps([[plain]]).encode(), {}),
        ("a text", b'"tools/list"', {}),
        ("a number", b"42", {}),
        ("null", b"null", {}),
        ("no JSON", b"{tools/list", {}),
        ("cut JSON", json.dumps(plain).encode()[:-5], {}),
        ("two requests in one body", json.dumps(plain).encode() * 2, {}),
        ("deep JSON", deep, {}),
        ("deep arguments", b'{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"x":' + deep + b"}}", {}),
        ("no version", json.dumps({key: value for key, value in plain.items() if key != "jsonrpc"}).encode(), {}),
        ("another version", json.dumps({**plain, "jsonrpc": "1.0"}).encode(), {}),
        ("parameters in a list", json.dumps({**plain, "params": [1]}).encode(), {}),
        ("no method", json.dumps({"jsonrpc": "2.0", "id": 1}).encode(), {}),
        ("a method that is a list", json.dumps({**plain, "method": ["tools/list"]}).encode(), {}),
        ("a very long method", json.dumps({**plain, "method": "x" * 100_000}).encode(), {}),
        ("a member twice", b'{"jsonrpc":"2.0","id":1,"method":"tools/list","method":"score","params":{}}', {}),
        ("not a number", b'{"jsonrpc":"2.0","id":NaN,"method":"tools/list","params":{}}', {}),
        ("a lone surrogate", b'{"jsonrpc":"2.0","id":"\\ud800","method":"tools/list","params":{}}', {}),
        ("bytes that are no UTF-8", b'{"jsonrpc":"2.0","id":"\xff\xfe","method":"tools/list"}', {}),
        ("UTF-16", json.dumps(plain).encode("utf-16"), {}),
        ("a byte order mark", b"\xef\xbb\xbf" + json.dumps(plain).encode(), {}),
        ("compressed JSON", gzip.compress(json.dumps(plain).encode()), {"Content-Encoding": "gzip"}),
        ("a form", b"method=score&id=1", {"Content-Type": "application/x-www-form-urlencoded"}),
        ("XML", _XML, {"Content-Type": "application/xml"}),
        ("no content type", json.dumps(plain).encode(), {"Content-Type": ""}),
        ("a prototype", b'{"jsonrpc":"2.0","id":1,"method":"tools/list","params":{"__proto__":{"admin":true}}}', {}),
        ("a response", json.dumps({"jsonrpc": "2.0", "id": 1, "result": {}}).encode(), {}),
        ("a notification", b'{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":1}}', {}),
    )  # fmt: skip
    for number in (None, 1.5, True, {"a": 1}, [1], -1, 2**70, "x" * 10_000, ""):
        yield f"the id {json.dumps(number)[:30]}", json.dumps({**plain, "id": number}).encode(), {}


def _tell(target: Target, what: str, where: str, text: str, answer: Answer) -> None:
    found = INNARDS.search(text)
    shown = excerpt(text, found[0] if found else "\0")
    target.report.add("crash", what, f"attack: {ATTACK}", where, shown, f"status {answer.status}", FIX)
