"""A stdio MCP server of the standard library alone, so that it starts at once: ``python own_server_toy.py [MANNER…]``.

It keeps words. A manner is something that it does wrong.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

MANNERS = set(sys.argv[1:])
TEXT = {"type": "object", "properties": {"word": {"type": "string", "description": "A word."}}, "required": ["word"]}
NONE: dict[str, Any] = {"type": "object", "properties": {}}
words: list[str] = []
tools = [
    {"name": "add", "description": "Keep a word.", "inputSchema": TEXT},
    {"name": "read", "description": "Read all words.", "inputSchema": NONE},
    {"name": "do", "description": "Do something odd.", "inputSchema": TEXT},
]


def say(**message: Any) -> None:
    sys.stdout.write(json.dumps({"jsonrpc": "2.0", **message}) + "\n")
    sys.stdout.flush()


def text(said: str, error: bool = False) -> dict[str, Any]:
    return {"content": [{"type": "text", "text": said}], "isError": error}


def call(name: str, arguments: dict[str, Any]) -> dict[str, Any]:
    if name == "add":
        words.append(arguments["word"])
        return text(f"{len(words)} words")
    if name == "read":
        return text(" ".join(words))
    match arguments["word"]:
        case "exit":
            print("giving up", file=sys.stderr, flush=True)
            os._exit(3)
        case "children":
            quiet = {"stdin": subprocess.DEVNULL, "stdout": subprocess.DEVNULL, "stderr": subprocess.DEVNULL}
            near = subprocess.Popen(["sleep", "300"], **quiet)  # type: ignore[call-overload]
            away = subprocess.Popen(["sleep", "300"], start_new_session=True, **quiet)  # type: ignore[call-overload]
            double = "import subprocess as s; print(s.Popen(['sleep', '300'], start_new_session=True, stdout=-3).pid)"
            orphan = subprocess.run([sys.executable, "-c", double], stdout=-1, stderr=-3, text=True, check=True).stdout
            return text(f"{near.pid} {away.pid} {orphan.strip()}")
        case "large":
            return text("x" * 100_000_000)
        case "hang":
            time.sleep(300)
        case "change":
            tools.append({"name": "more", "description": "More.", "inputSchema": NONE})
            say(method="notifications/tools/list_changed")
            return text("changed")
        case "same":
            say(method="notifications/tools/list_changed")
            return text("not changed")
        case "noise":
            print("debug: not a message" * 3, flush=True)
            return text("said something else before")
        case "where":
            return text(json.dumps({"folder": str(Path.cwd()), "environment": dict(os.environ), "pid": os.getpid()}))
        case "wrong":
            return {"content": "no list"}
        case "ask":
            say(id="q", method="elicitation/create", params={"message": "?", "requestedSchema": NONE})
            answer = json.loads(sys.stdin.readline())
            return text(f"no answer: {answer['error']['message']}", error=True)
    return text("done")


def answer(message: dict[str, Any]) -> Any:
    params = message.get("params") or {}
    match message["method"]:
        case "initialize":
            if "hang" in MANNERS:
                time.sleep(300)
            if "quit" in MANNERS:
                print("no licence", file=sys.stderr, flush=True)
                sys.exit(7)
            version = "2024-11-05" if "old" in MANNERS else params["protocolVersion"]
            return {"protocolVersion": version, "capabilities": {"tools": {"listChanged": True}},
                    "serverInfo": {"name": "toy", "version": "9"}, "instructions": "Keep words."}  # fmt: skip
        case "tools/list":
            if "endless" in MANNERS:
                number = int(params.get("cursor", 0))
                made = [{**tools[0], "name": f"t{number}-{place}"} for place in range(20)]
                return {"tools": made, "nextCursor": str(number + 1)}
            if "invalid" in MANNERS:
                odd = {"type": "object", "properties": {"a": {"$ref": "#"}}}
                return {"tools": [{"name": "x", "inputSchema": odd}, *tools]}
            if "untyped" in MANNERS:
                return {"tools": [tools[0], {"name": "y", "inputSchema": {"type": "string"}}]}
            if "fickle" in MANNERS and os.getpid() % 2:
                return {"tools": [*tools, {"name": "odd", "description": "Odd.", "inputSchema": NONE}]}
            return {"tools": tools}
        case "tools/call":
            return call(params["name"], params["arguments"])
    return None


if "noise" in MANNERS:
    print("Welcome to the toy!\n{not json", flush=True)
for line in sys.stdin:
    message = json.loads(line)
    if "id" in message:
        result = answer(message)
        if result is None:
            say(id=message["id"], error={"code": -32601, "message": "Method not found"})
        else:
            say(id=message["id"], result=result)
if "children" in MANNERS:
    time.sleep(300)
