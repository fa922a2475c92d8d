"""Episodes of others: tokens that are nearly right, handles in the wrong place, and ways to smuggle a token in."""

from __future__ import annotations

import json

from mcpgym.calls import CallRecord
from mcpgym.control import OpenedEpisode
from mcpgym_clients.scanning.attacks.target import STRANGER, Inside, Target
from mcpgym_clients.scanning.raw_http import Answer
from mcpgym_clients.scanning.search import excerpt

ATTACK = "tokens"
FIX = "let the token in the path, whole and exact, be all that names an episode; ignore headers, queries and arguments"


async def attack_tokens(target: Target) -> None:
    """Try to reach any episode but through its own URL. Only for a server of ours, whose episodes can be looked at."""
    if target.inside is None or target.token is None:
        return
    other = await target.inside.open()
    await _near(target, target.token)
    await _smuggled(target, target.inside, other)
    await _as_handles(target, other)
    await target.inside.control.close(other.token)
    await _ended(target, other)


async def _near(target: Target, token: str) -> None:
    """Spellings of the player's own token, which must not be taken for it: what is near is guessed sooner."""
    flipped = token[:-1] + ("0" if token[-1] != "0" else "1")
    paths = [
        flipped, token[:-1], token + "0", token.upper() if token.upper() != token else token.swapcase(), f" {token}",
        f"{token}%20", f"{token}%00", f"{token}%0a", f"%20{token}", f"%{ord(token[0]):02x}{token[1:]}0", f"{token}/",
        f"./{token}",
        f"x/../{token}", f"{token};a", "0" * 32, "f" * 32, "*", "%2a", "..", "-1", "null", "undefined", "",
        "' OR '1'='1",
        "{}", "latest", "current", "default", token[16:] + token[:16], "%", "\u00e9" * 32,
    ]  # fmt: skip
    for spelt in paths:
        path = f"/e/{spelt}/mcp"
        answer = await target.rpc(ATTACK, "tools/list", path=path, owner=STRANGER)
        if _answers(answer):
            _tell(target, path, "a token that is nobody's is answered", answer)


async def _smuggled(target: Target, inside: Inside, other: OpenedEpisode) -> None:
    """Name the other episode everywhere but in the path: its call log must stay as it is."""
    token = other.token
    name = other.tools[0]["name"] if other.tools else "read"
    url = f"/e/{token}/mcp"
    headers: list[dict[str, str]] = [
        {"Mcp-Session-Id": token}, {"X-Episode": token}, {"X-Session-Id": token}, {"X-Original-URL": url},
        {"X-Rewrite-URL": url}, {"X-Forwarded-Path": url}, {"X-Forwarded-Uri": url}, {"X-Forwarded-Prefix": url},
        {"Forwarded": f"for=127.0.0.1;host=localhost;path={url}"}, {"Cookie": f"episode={token}; session={token}"},
        {"Authorization": f"Bearer {token}"}, {"Referer": f"http://localhost{url}"}, {"X-HTTP-Path-Override": url},
        {"Idempotency-Key": token}, {"Last-Event-ID": token},
    ]  # fmt: skip
    episode = inside.control.episodes.get(token)
    for extra in headers:
        await target.rpc(ATTACK, "tools/call", {"name": name, "arguments": {}}, headers=extra)
        _touched(target, episode.calls, f"header {next(iter(extra))}")
    names = (
        "episode",
        "episode_id",
        "episode_handle",
        "token",
        "session",
        "session_id",
        "state",
        "handle",
        "self",
        "env",
    )
    for key in names:
        await target.rpc(ATTACK, "tools/call", {"name": name, "arguments": {key: token}})
        _touched(target, episode.calls, f"argument {key}")
        await target.rpc(
            ATTACK, "tools/call", {"name": name, "arguments": {}, "_meta": {key: token, f"mcpgym/{key}": token}}
        )
        _touched(target, episode.calls, f"_meta {key}")
        await target.rpc(ATTACK, "tools/call", {"name": name, "arguments": {}, key: token})
        _touched(target, episode.calls, f"parameter {key}")
    for path in (
        f"{target.address.path}?episode={token}",
        f"{target.address.path}?token={token}",
        f"{target.address.path}/../../{token}/mcp",
    ):
        await target.rpc(ATTACK, "tools/call", {"name": name, "arguments": {}}, path=path)
        _touched(target, episode.calls, f"path {path.replace(token, 'TOKEN')}")


async def _as_handles(target: Target, other: OpenedEpisode) -> None:
    """A token is no handle at the bare address, and a handle no token."""
    started = await target.rpc(
        ATTACK, "tools/call", {"name": "start_episode", "arguments": {}}, path=f"/{other.environment}/mcp"
    )
    handle = started.body.decode("utf-8", "replace").partition("episode: ")[2][:32]
    name = other.tools[0]["name"] if other.tools else "read"
    for token in (other.token, target.token):
        answer = await target.rpc(
            ATTACK, "tools/call", {"name": name, "arguments": {"episode": token}}, path=f"/{other.environment}/mcp"
        )
        if _answers(answer) and b'"isError":false' in answer.body.replace(b" ", b""):
            _tell(target, "bare /mcp", "a token is taken for a handle", answer)
    if len(handle) == 32:
        answer = await target.rpc(ATTACK, "tools/list", path=f"/e/{handle}/mcp", owner=STRANGER)
        if _answers(answer):
            _tell(target, "/e/HANDLE/mcp", "a handle is taken for a token", answer)


async def _ended(target: Target, other: OpenedEpisode) -> None:
    """An episode that was closed says that it has ended, and nothing of what it was."""
    name = other.tools[0]["name"] if other.tools else "read"
    path = f"/e/{other.token}/mcp"
    answer = await target.rpc(ATTACK, "tools/call", {"name": name, "arguments": {}}, path=path, owner=other.token)
    if _answers(answer) and b'"isError":false' in answer.body.replace(b" ", b""):
        _tell(target, "/e/ENDED/mcp", "an episode that has ended still answers calls", answer)
    prompts = await target.rpc(ATTACK, "prompts/get", {"name": "task"}, path=path, owner=other.token)
    if _answers(prompts):
        _tell(target, "/e/ENDED/mcp", "an episode that has ended still shows its task", prompts)


def _answers(answer: Answer) -> bool:
    """Whether an MCP result came back."""
    try:
        found = json.loads(answer.body)
    except ValueError:
        return False
    return answer.status == 200 and isinstance(found, dict) and "result" in found


def _touched(target: Target, calls: list[CallRecord], how: str) -> None:
    if calls:
        what = f"a player reaches another episode by {how}"
        target.report.add("isolation", what, f"attack: {ATTACK}", how, str(calls[-1])[:160], "its call log grew", FIX)
        calls.clear()


def _tell(target: Target, where: str, what: str, answer: Answer) -> None:
    text = answer.body.decode("utf-8", "replace")
    target.report.add("token", what, f"attack: {ATTACK}", where, excerpt(text, "\0"), "it gave a result", FIX)
