"""Requests for the parity of both lanes: plain calls, and every way they go wrong, one at a time."""

from __future__ import annotations

import base64
import copy
import json
from typing import Any

from wire_toys import Headers, modern_call, raw_headers

PLAIN_HEADERS, PLAIN = modern_call("add", {"word": "x"})
PLAIN_HEADERS = {"host": "127.0.0.1:8000", **PLAIN_HEADERS}
VERSION = "io.modelcontextprotocol/protocolVersion"
CAPABILITIES = "io.modelcontextprotocol/clientCapabilities"
INFO = "io.modelcontextprotocol/clientInfo"
LEVEL = "io.modelcontextprotocol/logLevel"
GONE = object()
"""Stands for a member that is not there."""

Request = tuple[Headers, bytes, str]
Answer = tuple[int, bytes | None, bytes]


def body_with(*path: str, value: Any, base: Any = None) -> bytes:
    """The plain request with one member changed, or taken out."""
    made = copy.deepcopy(base or PLAIN)
    node = made
    for step in path[:-1]:
        node = node[step]
    if value is GONE:
        node.pop(path[-1], None)
    else:
        node[path[-1]] = value
    return json.dumps(made).encode()


def headers_with(name: str, value: Any) -> Headers:
    return raw_headers({key: text for key, text in PLAIN_HEADERS.items() if key != name}) + (
        [] if value is GONE else [(name.encode(), value if isinstance(value, bytes) else value.encode())]
    )


def named(name: str, header: Any = GONE) -> Request:
    """A call of ``name``, with its name in the routing header unless another header is given."""
    header = name if header is GONE else header
    return headers_with("mcp-name", header), body_with("params", "name", value=name), "POST"


def sentinel(name: str) -> str:
    return f"=?base64?{base64.b64encode(name.encode()).decode()}?="


def deep(levels: int, left: str = '{"a":', right: str = "}") -> bytes:
    return json.dumps(PLAIN).replace('{"word": "x"}', f'{{"word": {left * levels}1{right * levels}}}').encode()


def arguments(text: str) -> bytes:
    return json.dumps(PLAIN).replace('{"word": "x"}', text).encode()


def corpus() -> dict[str, Request]:
    plain_body = json.dumps(PLAIN).encode()
    bodies: dict[str, bytes] = {"plain": plain_body}

    def members(place: tuple[str, ...], values: list[Any]) -> None:
        for number, value in enumerate(values):
            label = "gone" if value is GONE else ascii(value)[:30]
            bodies[f"{ascii('.'.join(place))[1:-1]} {number} {label}"] = body_with(*place, value=value)

    whole = [0, -1, 2**31, 2**53, 2**63 - 1, 2**63, -(2**63), -(2**63) - 1, 10**100]
    members(("id",), [*whole, "a", "", "é", '"\\', "a" * 999, "\ud800", True, False, None, 1.0, 1.5, [], {}, GONE])
    members(("jsonrpc",), ["1.0", 2.0, None, GONE])
    methods = ["tools/Call", "tools/list", "server/discover", "ping", "initialize", "nope", "", 5, None, GONE]
    members(("method",), methods)
    members(("extra",), [1, None])
    members(("params",), [None, [], "x", {}, GONE])
    members(("params", "name"), ["nope", "", "é", "\ud800", "_meta", "__init__", 5, None, [], GONE])
    members(
        ("params", "arguments"),
        [{}, {"\ud800": 1}, None, [], "x", 5, {"word": 5}, {"word": "x", "more": 1}, {"": ""}, GONE],
    )
    members(("params", "arguments", "times"), [0, 9, 10, -1, 2.0, 2.5, True, None, "2", 10**30, float("inf")])
    members(
        ("params", "arguments", "word"),
        ["é", "東京 ☃ \U0001f3b2", "\x00\x7f\n\t", '"\\/', "\ud800", "\u2028", "a" * 9999, "stop"],
    )
    members(("params", "_meta", "\ud800"), [1])
    members(("params", "task"), [{"ttl": 1}, None])
    members(("params", "inputResponses"), [{}, {"a": {"roots": []}}, 5])
    members(("params", "requestState"), ["s", 5, None])
    members(("params", "_meta"), [None, [], {}, "x", GONE])
    members(("params", "_meta", VERSION), ["2025-11-25", "2099-01-01", "", None, 5, GONE])
    empty_each = {name: {} for name in ("roots", "sampling", "elicitation", "experimental", "extensions")}
    members(
        ("params", "_meta", CAPABILITIES),
        [None, [], "x", empty_each, {"other": {}}, {"roots": {"listChanged": True}}, {"sampling": {"tools": {}}},
         {"roots": 5}, {"elicitation": {"form": {}}}, {"extensions": {"a/b": {}}}, {"roots": None}, GONE],
    )  # fmt: skip
    info = {"name": "t", "version": "1"}
    members(
        ("params", "_meta", INFO),
        [None, [], {}, {"name": "t"}, {"name": 5, "version": "1"}, {**info, "title": "T"}, {**info, "title": None},
         {**info, "icons": []}, {**info, "icons": "x"}, {**info, "other": "y"}, {**info, "title": 5},
         {**info, "name": "\ud800"}, {**info, "\ud800": "x"}, GONE],
    )  # fmt: skip
    members(("params", "_meta", LEVEL), ["info", "loud", None, 5])
    members(("params", "_meta", "progressToken"), ["t", "\ud800", 5, True, None, 1.5, [], {}])
    members(("params", "_meta", "mcpgym/idempotencyKey"), ["k", "", 5, None, "k" * 500])
    members(("params", "_meta", "claudecode/toolUseId"), ["toolu_1", "\ud800", {}])
    members(("params", "_meta", "traceparent"), ["00-" + "1" * 32 + "-" + "2" * 16 + "-01", "bad", 5])
    members(("params", "_meta", "io.modelcontextprotocol/related-task"), [{"taskId": "t"}, 5])
    bodies |= {
        "empty": b"", "null": b"null", "a number": b"1", "an empty batch": b"[]", "a batch": b"[" + plain_body + b"]",
        "not json": b"{", "two values": plain_body + b"{}", "spaces around": b" \n" + plain_body + b"\r\n ",
        "a byte order mark": b"\xef\xbb\xbf" + plain_body, "utf-16": json.dumps(PLAIN).encode("utf-16"),
        "utf-32": json.dumps(PLAIN).encode("utf-32"), "latin-1": plain_body.replace(b'"x"', b'"\xe9"'),
        "a surrogate in utf-8": plain_body.replace(b'"x"', b'"\xed\xa0\x80"'),
        "a pair escaped": plain_body.replace(b'"x"', b'"\\ud83c\\udfb2"'),
        "a response": b'{"jsonrpc":"2.0","id":1,"result":{}}', "NaN": arguments('{"word":"x","times":NaN}'),
        "-Infinity": arguments('{"word":-Infinity}'), "1e999": arguments('{"word":"x","times":1e999}'),
        "an int of 4300 digits": arguments('{"word":"x","times":' + "9" * 4300 + "}"),
        "an int of 4301 digits": arguments('{"word":"x","times":' + "9" * 4301 + "}"),
        "a key twice": arguments('{"word":"x","word":"y"}'),
        "an id twice": plain_body.replace(b'"id": 1', b'"id": 1, "id": 2'),
        **{f"deep {levels}": deep(levels) for levels in (10, 60, 64, 70, 300, 900, 20_000)},
        "deep list": deep(200, "[", "]"), "too large": plain_body + b" " * 300_000,
        "a notification": json.dumps({"jsonrpc": "2.0", "method": "notifications/cancelled"}).encode(),
    }  # fmt: skip
    found: dict[str, Request] = {
        f"body: {name}": (raw_headers(PLAIN_HEADERS), body, "POST") for name, body in bodies.items()
    }

    def header(name: str, values: list[Any]) -> None:
        for number, value in enumerate(values):
            label = "gone" if value is GONE else ascii(value)[:30]
            found[f"header: {name} {number} {label}"] = headers_with(name, value), plain_body, "POST"
        found[f"header: {name} twice"] = (
            raw_headers(PLAIN_HEADERS) + raw_headers({name: PLAIN_HEADERS.get(name, "1")}),
            plain_body,
            "POST",
        )

    header(
        "host",
        [GONE, "localhost:1", "LOCALHOST", "[::1]:8000", "evil.example", "127.0.0.1.evil.example", "", "localhost:x"],
    )
    header(
        "origin",
        [
            "http://localhost:3000",
            "https://127.0.0.1",
            "http://evil.example",
            "null",
            "",
            "file://",
            "http://localhost/x",
        ],
    )
    types = ["application/json; charset=utf-8", "APPLICATION/JSON", "text/plain", "application/jsonx", "", GONE]
    header("content-type", types)
    accepts = [
        "application/json",
        "*/*",
        "application/*",
        "text/event-stream",
        "application/json;q=0.5",
        "text/html",
        "",
        GONE,
    ]
    header("accept", accepts)
    header("mcp-protocol-version", ["2025-11-25", "2025-06-18", "2099-01-01", "", " 2026-07-28", b"\xff", GONE])
    header("mcp-method", ["tools/list", "TOOLS/CALL", "", b"\xff", GONE])
    header(
        "mcp-name", ["read", "ADD", "", sentinel("add"), sentinel("read"), "=?base64?!?=", "=?base64??=", b"\xff", GONE]
    )
    header("mcp-param-word", ["x", "y"])
    header("mcp-session-id", ["abc"])
    header("idempotency-key", ["k", "", b"\xff"])
    header("content-length", ["5", "999999999", "x", "-1"])
    found |= {
        "name: unicode": named("é", sentinel("é")),
        "name: unicode unencoded": named("é", b"\xe9"),
        "name: like a sentinel": named(sentinel("add")),
        "name: like a sentinel, encoded": named(sentinel("add"), sentinel(sentinel("add"))),
        "name: unknown": named("nope"),
        "name: broken tool": named("broken"),
        "name: long": named("n" * 300),
    }
    for name in ("read", "broken"):
        headers, body = modern_call(name)
        found[f"call: {name}"] = raw_headers({**PLAIN_HEADERS, **headers}), json.dumps(body).encode(), "POST"
    for name in ("add_slowly", "add_in_thread"):
        headers, body = modern_call(name, {"word": "w", "seconds": 0.01})
        found[f"call: {name}"] = raw_headers({**PLAIN_HEADERS, **headers}), json.dumps(body).encode(), "POST"
    headers, body = modern_call("overrun", {"seconds": 0.3})
    found["call: overrun"] = raw_headers({**PLAIN_HEADERS, **headers}), json.dumps(body).encode(), "POST"
    for method in (
        "tools/list",
        "server/discover",
        "prompts/list",
        "resources/list",
        "ping",
        "nope",
        "subscriptions/listen",
    ):
        asked = headers_with("mcp-method", method)
        found[f"asked: {method}"] = asked, body_with("method", value=method), "POST"
    for method in ("GET", "PUT", "DELETE", "OPTIONS", "HEAD", "PATCH"):
        found[f"method: {method}"] = raw_headers(PLAIN_HEADERS), plain_body, method
    return found


CORPUS = corpus()
