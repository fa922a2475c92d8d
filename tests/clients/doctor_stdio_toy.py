"""A small MCP server on standard input and output, well or with one fault: ``python doctor_stdio_toy.py [FAULT]``."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from typing import Any

FAULT = sys.argv[1] if len(sys.argv) > 1 else ""
TOOL = {
    "name": "add",
    "description": "Add a number; answers the sum so far.",
    "inputSchema": {
        "type": "object",
        "properties": {"number": {"type": "integer", "description": "What to add."}},
        "required": ["number"],
        "additionalProperties": False,
    },
}
DONE = {"resultType": "complete", "ttlMs": 0, "cacheScope": "private"}
answers: dict[str, Any] = {}
total = 0


def say(answer: dict[str, Any]) -> None:
    ascii_only = FAULT != "locale"
    text = json.dumps({"jsonrpc": "2.0", **answer}, ensure_ascii=ascii_only)
    if FAULT == "locale":
        sys.stdout.write(text + "\n")
        sys.stdout.flush()
    else:
        sys.stdout.buffer.write(text.encode() + b"\n")
        sys.stdout.buffer.flush()


def call(params: dict[str, Any]) -> dict[str, Any]:
    global total
    if params.get("name") != "add":
        return refusal(f"there is no tool {params.get('name')}; there is add")
    given = params.get("arguments")
    number = given.get("number") if isinstance(given, dict) and set(given) == {"number"} else None
    if not isinstance(number, int) or isinstance(number, bool):
        return refusal("add: number must be given, and be an integer, and nothing else")
    key = params.get("_meta", {}).get("claudecode/toolUseId") or os.urandom(8).hex()
    if key not in answers:
        total += number
        answers[key] = {"content": [{"type": "text", "text": f"The sum is {total}."}], "isError": False}
    return answers[key]


def refusal(text: str) -> dict[str, Any]:
    return {"content": [{"type": "text", "text": text}], "isError": True}


def main() -> None:
    if FAULT == "stays":
        signal.signal(signal.SIGTERM, signal.SIG_IGN)
    if FAULT == "child":
        subprocess.Popen([sys.executable, "-c", "import time; time.sleep(120)"], stdin=subprocess.DEVNULL)
    if FAULT == "noise":
        print("starting up", flush=True)
    for line in sys.stdin.buffer:
        try:
            asked = json.loads(line)
        except (ValueError, RecursionError):
            say({"id": None, "error": {"code": -32700, "message": "this is no JSON"}})
            continue
        number, params = asked.get("id"), asked.get("params") or {}
        if number is None:
            continue
        version = params.get("_meta", {}).get("io.modelcontextprotocol/protocolVersion", "2026-07-28")
        method = asked.get("method")
        if version != "2026-07-28":
            say(
                {
                    "id": number,
                    "error": {"code": -32022, "message": "unsupported", "data": {"supported": ["2026-07-28"]}},
                }
            )
        elif method == "server/discover":
            say({"id": number, "result": {"supportedVersions": ["2026-07-28"], "capabilities": {}, **DONE}})
        elif method == "initialize":
            wanted = params.get("protocolVersion")
            offered = wanted if wanted in ("2025-11-25", "2025-06-18", "2025-03-26", "2024-11-05") else "2025-11-25"
            info = {"name": "toy", "version": "1"}
            say({"id": number, "result": {"protocolVersion": offered, "capabilities": {}, "serverInfo": info}})
        elif method == "ping":
            say({"id": number, "result": {}})
        elif method == "tools/list":
            say(
                {
                    "id": number,
                    "result": {"tools": [TOOL], **DONE},
                }
            )
        elif method == "tools/call":
            say({"id": number, "result": {**call(params), **DONE}})
        else:
            say({"id": number, "error": {"code": -32601, "message": f"there is no {method}"}})
    if FAULT == "stays":
        time.sleep(120)


if __name__ == "__main__":
    main()
