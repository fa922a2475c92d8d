"""An environment that keeps its secrets, and one for each way to give them away; and servers that do."""

from __future__ import annotations

import base64
import codecs
import json
import os
import traceback
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from random import Random
from typing import Annotated, Any

from mcpgym import Environment, LazyTasks, Message, Task, ToolError, Transcript, derive_seed, reward, task_id, tool
from mcpgym.messages import user

WORDS = ("apple", "river", "stone", "cloud", "amber", "tiger")


@dataclass
class Room:
    """One episode: the word to find, its key, and what has been said."""

    word: str
    key: bytes
    seed: int
    said: list[str] = field(default_factory=list)
    found: bool = False
    graded: float | None = None


class Vault(Environment[Task, Room]):
    """A healthy one: find the word. Its letters are told only as the rules say."""

    name = "vault"
    description = "Find the word that opens the vault."
    instructions = "Guess the word with guess; look tells what you have said."
    max_turns = 25

    def tasks(self, split: str) -> Sequence[Task]:
        return LazyTasks(5, lambda index: self.row(split, index))

    def row(self, split: str, index: int) -> Task:
        seed = derive_seed("vault", split, index)
        info = {"answer": WORDS[seed % len(WORDS)], "seed": seed, "difficulty": 0.3716 + index / 7, "level": "easy"}
        return Task(task_id(split, index), split, [user(f"The vault {split} {index} is shut. Open it.")], info)

    def reset(self, task: Task, seed: int) -> Room:
        if task.info["level"] != "easy":
            raise ValueError("there is one level")
        mixed = derive_seed(task.info["seed"], seed)
        return Room(task.info["answer"], mixed.to_bytes(8, "big"), seed)

    @tool(inline=True)
    def guess(self, room: Room, word: Annotated[str, "The word."]) -> str:
        """Say a word."""
        room.said.append(word)
        if not word:
            raise ToolError(self.complain(room))
        room.found = word == room.word
        return self.tell(room)

    @tool(inline=True, read_only=True)
    def look(self, room: Room) -> str:
        """See what you have said."""
        return self.show(room)

    def complain(self, room: Room) -> str:
        return "say something"

    def tell(self, room: Room) -> str:
        lucky = Random(room.key).random() < 0.5
        return f"{len(room.said)} words. {'Lucky' if lucky else 'Unlucky'} you."

    def show(self, room: Room) -> str:
        return ", ".join(room.said) or "nothing"

    def is_done(self, state: Room) -> bool:
        return state.found

    @reward
    def opened(self, room: Room) -> float:
        """1 if the vault is open."""
        return float(room.found)

    @reward(weight=0.1)
    def brief(self, transcript: Transcript) -> float:
        """Shorter is better."""
        return 1 / (1 + len(transcript.assistant_turns))


class SaysItsReward(Vault):
    def show(self, room: Room) -> str:
        return f"reward so far: {self.opened(room)}"


class HintsAtItsReward(Vault):
    """Rounded so far that no canary is left of it: seen by comparing two plays."""

    def tell(self, room: Room) -> str:
        return "warm" if self.opened(room) > 0.05 else "cold"


class RemembersItsGrade(Vault):
    """Scoring leaves a trace in the state, which a tool shows."""

    @reward
    def opened(self, room: Room) -> float:
        room.graded = 0.25 * len(room.said)
        return room.graded

    def show(self, room: Room) -> str:
        return "you were graded" if room.graded is not None else "nothing yet"


class SeedInPrompt(Vault):
    def messages(self, task: Task, state: Room) -> Sequence[Message]:
        return [user(f"Game {state.seed:#x}. Open the vault.")]


class SeedInAnError(Vault):
    def complain(self, room: Room) -> str:
        return f"empty word in episode {room.seed:,}"


class ShowsTaskInfo(Vault):
    def reset(self, task: Task, seed: int) -> Room:
        room = super().reset(task, seed)
        room.said.append(f"debug: {dict(task.info)}")
        return room


class AnswerInBase64(Vault):
    def tell(self, room: Room) -> str:
        return base64.b64encode(f"v1:{room.word}:end".encode()).decode()


class AnswerBackwardsAndSpaced(Vault):
    def tell(self, room: Room) -> str:
        return " ".join(reversed(room.word))


class AnswerInRot13(Vault):
    def tell(self, room: Room) -> str:
        return codecs.encode(room.word, "rot13")


class AnswerInInvisibleLetters(Vault):
    def tell(self, room: Room) -> str:
        return "Hm." + "".join(chr(0xE0000 + ord(letter)) for letter in room.word if letter.isascii())


class AnswerInPrompt(Vault):
    def row(self, split: str, index: int) -> Task:
        row = super().row(split, index)
        return row

    def messages(self, task: Task, state: Room) -> Sequence[Message]:
        return [user(f"Open the vault. (Expected: {task.info['answer']})")]


class AnswerInSchema(Vault):
    @tool(inline=True)
    def open(self, room: Room, word: Annotated[str, "The word, such as amber or tiger or river or stone."]) -> str:
        """Open the vault with apple, cloud, stone, river, amber or tiger."""
        return ""


class StateInRefusal(Vault):
    def invalid_arguments(self, state: Room, tool: str, problem: str) -> str:
        return f"{problem} (state: {state!r})"


class KeyInAnswer(Vault):
    """A secret that was made from the seed, and is in no task."""

    def tell(self, room: Room) -> str:
        return f"session {int.from_bytes(room.key, 'little')}"


class SharesState(Vault):
    """What was said is kept on the class: every episode sees every other's."""

    everywhere: list[str] = []

    def show(self, room: Room) -> str:
        self.everywhere.extend(room.said[-1:])
        return " ".join(self.everywhere[-50:])


class CountsEverybody(Vault):
    """Another episode shows through as a number alone: seen by comparing two plays."""

    calls = 0

    def reset(self, task: Task, seed: int) -> Room:
        type(self).calls = 0
        return super().reset(task, seed)

    def tell(self, room: Room) -> str:
        type(self).calls += 1
        return f"call {self.calls}"


class ShowsTracebacks(Vault):
    def invalid_arguments(self, state: Room, tool: str, problem: str) -> str:
        try:
            raise ValueError(problem)
        except ValueError:
            return traceback.format_exc()


class ShowsItsProcess(Vault):
    def show(self, room: Room) -> str:
        return json.dumps(dict(os.environ))


class AnswerInRespond(Vault):
    """No tools of use: it speaks as the user, and says too much."""

    def respond(self, state: Room, transcript: Transcript) -> Sequence[Message] | None:
        if len(transcript.assistant_turns) > 3:
            return None
        return [user(f"No, it is {state.word.upper()}.")]


ENVIRONMENTS: dict[type[Vault], str] = {
    SaysItsReward: "reward",
    HintsAtItsReward: "reward",
    RemembersItsGrade: "reward",
    SeedInPrompt: "seed",
    SeedInAnError: "seed",
    ShowsTaskInfo: "hidden info",
    AnswerInBase64: "hidden info",
    AnswerBackwardsAndSpaced: "hidden info",
    AnswerInRot13: "hidden info",
    AnswerInInvisibleLetters: "hidden info",
    AnswerInPrompt: "hidden info",
    AnswerInSchema: "hidden info",
    AnswerInRespond: "hidden info",
    StateInRefusal: "hidden state",
    KeyInAnswer: "hidden state",
    SharesState: "other episode",
    CountsEverybody: "other episode",
    ShowsTracebacks: "inside",
    ShowsItsProcess: "process environment",
}
"""Each leaking environment, and the kind of finding that must be among what a scan says of it."""


App = Callable[[Any, Any, Any], Any]


class Around:
    """A players' listener with something of another author's around it."""

    def __init__(self, app: Any, episodes: Any) -> None:
        self.app, self.episodes = app, episodes
        self.running = app.running

    async def __call__(self, scope: Any, receive: Any, send: Any) -> None:
        await self.app(scope, receive, send)

    def token(self, scope: Any) -> str:
        return str(scope["path"]).removeprefix("/e/").removesuffix("/mcp")


async def answer(send: Any, body: Any, status: int = 200, headers: Sequence[tuple[bytes, bytes]] = ()) -> None:
    text = json.dumps(body).encode()
    sent = [(b"content-type", b"application/json"), (b"content-length", b"%d" % len(text)), *headers]
    await send({"type": "http.response.start", "status": status, "headers": sent})
    await send({"type": "http.response.body", "body": text})


class RewardInHeader(Around):
    async def __call__(self, scope: Any, receive: Any, send: Any) -> None:
        episode = self.episodes._live.get(self.token(scope))
        total = None if episode is None else (await episode.score([])).total

        async def marked(message: Any) -> None:
            if message["type"] == "http.response.start":
                message["headers"] = [*message["headers"], (b"x-trace", base64.b64encode(repr(total).encode()))]
            await send(message)

        await self.app(scope, receive, marked)


class SeedInMeta(Around):
    async def __call__(self, scope: Any, receive: Any, send: Any) -> None:
        episode = self.episodes._live.get(self.token(scope))

        async def marked(message: Any) -> None:
            if episode is not None and message["type"] == "http.response.body" and b'"_meta":{' in message["body"]:
                more = b'"_meta":{"trace":"%s",' % hex(episode.seed).encode()
                message["body"] = message["body"].replace(b'"_meta":{', more)
            if message["type"] == "http.response.start":
                message["headers"] = [row for row in message["headers"] if row[0] != b"content-length"]
            await send(message)

        await self.app(scope, receive, marked)


class MetricsForAll(Around):
    async def __call__(self, scope: Any, receive: Any, send: Any) -> None:
        if scope["path"] == "/metrics":
            return await answer(send, {"live": list(self.episodes._live)})
        await self.app(scope, receive, send)


class ControlBesideIt(Around):
    """Somebody mounted the control plane on the players' listener, behind a decoded path."""

    async def __call__(self, scope: Any, receive: Any, send: Any) -> None:
        if scope["path"].rstrip("/").endswith("/control/v1/health"):
            return await answer(send, {"status": "ok"}, headers=[(b"mcpgym-control", b"v1")])
        await self.app(scope, receive, send)


class ScoreRoute(Around):
    async def __call__(self, scope: Any, receive: Any, send: Any) -> None:
        if scope["path"].startswith("/e/") and scope["path"].endswith("/score"):
            episode = self.episodes._live.get(scope["path"][3:35])
            return await answer(send, {"total": None if episode is None else (await episode.score([])).total})
        await self.app(scope, receive, send)


class NearTokens(Around):
    """A token's last character does not matter."""

    async def __call__(self, scope: Any, receive: Any, send: Any) -> None:
        near = [token for token in self.episodes._live if scope["path"].startswith(f"/e/{token[:-1]}")]
        path = f"/e/{near[0]}/mcp" if near and scope["path"].endswith("/mcp") else scope["path"]
        await self.app({**scope, "path": path}, receive, send)


class SessionHeader(Around):
    """The session id decides, as in servers that key their state on it."""

    async def __call__(self, scope: Any, receive: Any, send: Any) -> None:
        named = dict(scope["headers"]).get(b"mcp-session-id", b"").decode()
        path = f"/e/{named}/mcp" if named in self.episodes._live else scope["path"]
        await self.app({**scope, "path": path}, receive, send)


class TokenInQuery(Around):
    async def __call__(self, scope: Any, receive: Any, send: Any) -> None:
        named = scope["query_string"].decode().removeprefix("episode=")
        path = f"/e/{named}/mcp" if named in self.episodes._live else scope["path"]
        await self.app({**scope, "path": path}, receive, send)


class AnyHost(Around):
    async def __call__(self, scope: Any, receive: Any, send: Any) -> None:
        headers = [(name, value) for name, value in scope["headers"] if name not in (b"host", b"origin")]
        await self.app({**scope, "headers": [*headers, (b"host", b"localhost")]}, receive, send)


class AnyOrigin(Around):
    async def __call__(self, scope: Any, receive: Any, send: Any) -> None:
        if scope["method"] == "OPTIONS":
            return await answer(send, {}, headers=[(b"access-control-allow-origin", b"*")])
        await self.app(scope, receive, send)


class TrustsRewrites(Around):
    async def __call__(self, scope: Any, receive: Any, send: Any) -> None:
        if dict(scope["headers"]).get(b"x-rewrite-url", b"").startswith(b"/control"):
            return await answer(send, {"environments": []})
        await self.app(scope, receive, send)


class HiddenTool(Around):
    """A tool that is not listed, and answers."""

    async def __call__(self, scope: Any, receive: Any, send: Any) -> None:
        if dict(scope["headers"]).get(b"mcp-name") == b"get_state":
            result = {"content": [{"type": "text", "text": "{}"}], "isError": False}
            return await answer(send, {"jsonrpc": "2.0", "id": 1, "result": result})
        await self.app(scope, receive, send)


class ExceptionPage(Around):
    """What goes wrong comes back whole."""

    async def __call__(self, scope: Any, receive: Any, send: Any) -> None:
        try:
            if b"gzip" in dict(scope["headers"]).get(b"content-encoding", b""):
                raise ValueError("cannot decode")
            await self.app(scope, receive, send)
        except ValueError:
            await answer(send, {"detail": traceback.format_exc()}, status=500)


class TellsTheSecret(Around):
    """The control plane's secret in a header, hashed: it can be checked against a list of guesses."""

    secret = ""

    async def __call__(self, scope: Any, receive: Any, send: Any) -> None:
        async def marked(message: Any) -> None:
            if message["type"] == "http.response.start":
                message["headers"] = [*message["headers"], (b"x-build", self.secret.encode().hex().upper().encode())]
            await send(message)

        await self.app(scope, receive, marked)


SERVERS: dict[type[Around], tuple[str, tuple[str, ...]]] = {
    RewardInHeader: ("reward", ("play",)),
    SeedInMeta: ("seed", ("play",)),
    TellsTheSecret: ("control secret", ("play",)),
    MetricsForAll: ("route", ("routes",)),
    ControlBesideIt: ("route", ("routes",)),
    ScoreRoute: ("route", ("routes",)),
    NearTokens: ("token", ("tokens",)),
    SessionHeader: ("isolation", ("tokens",)),
    TokenInQuery: ("isolation", ("tokens",)),
    AnyHost: ("rebinding", ("headers",)),
    AnyOrigin: ("cross-origin", ("headers",)),
    TrustsRewrites: ("header", ("headers",)),
    HiddenTool: ("hidden name", ("names",)),
    ExceptionPage: ("crash", ("malformed",)),
}
"""Each leaking server, the kind of finding that must be told, and the part of the scan that tells it."""
