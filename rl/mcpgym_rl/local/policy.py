"""``local:PATH``: a policy that is a model on this machine, played token for token."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from mcpgym.errors import ConfigurationError, UnknownNameError
from mcpgym.messages import Message
from mcpgym_rl.local.backend import Backend
from mcpgym_rl.local.chat import Chat
from mcpgym_rl.local.directory import ModelDirectory, open_directory
from mcpgym_rl.local.engine import Engine
from mcpgym_rl.local.line import Line
from mcpgym_rl.local.llama import Llama, LlamaShape, understands
from mcpgym_rl.packaged import MODELS, packaged_file
from mcpgym_rl.policy import EpisodeContext, PolicyError, Tokens, Turn, Usage

if TYPE_CHECKING:
    from mcpgym.environment import Environment

MAX_NEW_TOKENS = 256


class LocalPolicy:
    """A model directory as a policy. ``temperature``, ``min_p`` and ``max_new_tokens`` may be changed between runs.

    So may ``hot_min_p``, which stands for ``min_p`` in turns that a rollout's own temperatures make hotter; it is 0.

    Args:
        model: the directory, or its path.
        temperature: 0 takes the likeliest token each time.
        min_p: tokens less likely than ``min_p`` times the likeliest are not sampled.
        max_new_tokens: of one turn; a longer one is cut off, which ends the rollout.
        rows: how many conversations may be in the cache at once.
        device: ``cpu``, or a device of torch's (``cuda``): then transformers computes.
        name: how traces name it.

    Raises:
        ConfigurationError: the directory or an option will not do; the message says what would.
    """

    def __init__(
        self,
        model: ModelDirectory | str | Path,
        *,
        temperature: float = 0.0,
        min_p: float = 0.0,
        max_new_tokens: int = MAX_NEW_TOKENS,
        rows: int = 1024,
        device: str = "cpu",
        name: str | None = None,
    ) -> None:
        directory = model if isinstance(model, ModelDirectory) else open_directory(model)
        self.directory: ModelDirectory | None = directory
        chat = directory.chat
        self._set(chat, _backend(directory, device), temperature, min_p, max_new_tokens, rows)
        self.name = name or f"local:{directory.name}"

    @classmethod
    def over(
        cls,
        backend: Backend,
        chat: Chat,
        *,
        temperature: float = 1.0,
        min_p: float = 0.0,
        max_new_tokens: int = MAX_NEW_TOKENS,
        rows: int = 1024,
        name: str = "local",
    ) -> LocalPolicy:
        """A policy over a backend that is there already."""
        made = cls.__new__(cls)
        made.directory = None
        made._set(chat, backend, temperature, min_p, max_new_tokens, rows)
        made.name = name
        return made

    @classmethod
    def over_engine(
        cls, engine: Engine, chat: Chat, *, temperature: float, max_new_tokens: int, name: str = "local"
    ) -> LocalPolicy:
        """A policy over an engine that is there already, at one temperature."""
        made = cls.__new__(cls)
        made.directory = None
        made.chat, made.engine, made.name = chat, engine, name
        made.temperature, made.max_new_tokens = temperature, max_new_tokens
        made.min_p = made.hot_min_p = 0.0
        return made

    @classmethod
    def from_torch(
        cls,
        model: Any,
        chat: Chat,
        *,
        temperature: float = 1.0,
        min_p: float = 0.0,
        max_new_tokens: int = MAX_NEW_TOKENS,
        rows: int = 1024,
        name: str = "local",
    ) -> LocalPolicy:
        """A policy that decodes with the weights a torch model has at the time.

        A Llama on the CPU in 32-bit floats decodes in NumPy; any other model through its own forward. The weights are
        taken anew whenever a run begins (no conversation under way), or when :meth:`refresh` is called.

        Args:
            model: a ``LlamaForCausalLM`` or another causal model of transformers.
            chat: its conversation format.
            temperature, min_p, max_new_tokens, rows, name: as above.
        """
        backend: Backend
        if _plain_llama(model):
            backend = Llama(LlamaShape.of(model.config.to_dict()), lambda: _views(model), live=True)
        else:
            from mcpgym_rl.local.hugging_face import HuggingFace

            backend = HuggingFace(model, live=True)
        return cls.over(
            backend,
            chat,
            temperature=temperature,
            min_p=min_p,
            max_new_tokens=max_new_tokens,
            rows=rows,
            name=name,
        )

    def _set(
        self, chat: Chat, backend: Backend, temperature: float, min_p: float, max_new_tokens: int, rows: int
    ) -> None:
        for what, value, low, high in (
            ("temperature", temperature, 0.0, 100.0),
            ("min_p", min_p, 0.0, 1.0),
            ("max_new_tokens", max_new_tokens, 1, 10_000_000),
            ("rows", rows, 1, 100_000),
        ):
            if not low <= value <= high:
                raise ConfigurationError(f"{what} {value} must lie between {low:g} and {high:g}")
        self.chat = chat
        self.temperature, self.min_p, self.max_new_tokens = temperature, min_p, max_new_tokens
        self.hot_min_p = 0.0
        self.engine = Engine(backend, chat.end_ids, rows=rows)

    def refresh(self) -> None:
        """Take live weights as they are now, and drop what was computed with others; nothing may be under way."""
        self.engine.refresh()

    def begin(self, context: EpisodeContext) -> LocalSession:
        """A session for one rollout."""
        return LocalSession(self, context, self.engine.open(context.seed))

    async def aclose(self) -> None:
        """Stop the engine."""
        await self.engine.aclose()


class LocalSession:
    """A local model at work on one rollout."""

    def __init__(self, policy: LocalPolicy, context: EpisodeContext, line: Line) -> None:
        self._policy = policy
        self._context = context
        self._line = line
        self._shown = 0
        self._own_turns = 0
        self._before: list[int] = []
        self._mask: list[bool] = []
        self._logprobs: list[float] = []
        self._heats: list[float] = []

    async def act(self, messages: Sequence[Message]) -> Turn:
        """The next assistant turn; its tokens are those of the whole conversation."""
        policy, line = self._policy, self._line
        chunk = self._new_ids(messages)
        heats = self._context.temperatures
        heat = heats[self._own_turns] if self._own_turns < len(heats) else policy.temperature
        least = policy.hot_min_p if heat > policy.temperature else policy.min_p
        sampled = await line.generate(chunk, limit=policy.max_new_tokens, temperature=heat, min_p=least)
        made = len(sampled.ids)
        self._mask += [False] * len(chunk) + [True] * made
        self._logprobs += [0.0] * len(chunk) + sampled.logprobs
        if heats:
            self._heats += [0.0] * len(chunk) + [heat] * made
        before, ids = self._before, list(line.ids)
        assert ids[: len(before)] == before, (
            "a turn's prompt must be the ids of the turn before, and what was said since"
        )
        assert len(ids) == len(self._mask) == len(before) + len(chunk) + made
        self._before = ids
        self._own_turns += 1
        self._shown = len(messages)
        return Turn(
            policy.chat.read(sampled.ids),
            finish=sampled.finish,
            usage=Usage(len(ids) - made, made),
            tokens=Tokens(ids, list(self._mask), list(self._logprobs), list(self._heats) if heats else None),
        )

    def _new_ids(self, messages: Sequence[Message]) -> list[int]:
        """The ids of what this session has not seen yet."""
        chat = self._policy.chat
        if self._shown:
            return chat.continuation(messages[: self._shown + 1], messages[self._shown + 1 :])
        given = list(self._context.given)
        turns = [place for place, message in enumerate(messages) if message["role"] == "assistant"]
        turns = turns[len(turns) - len(given) :]
        if len(turns) < len(given):
            raise PolicyError(f"{len(given)} turns were given, and the conversation has {len(turns)}")
        ids = chat.opening(messages[: turns[0] if turns else None], self._context.tools)
        for number, (turn, place) in enumerate(zip(given, turns, strict=True), 1):
            end = turns[number] if number < len(turns) else len(messages)
            ids += given_ids(turn, chat)
            ids += chat.continuation(messages[: place + 1], messages[place + 1 : end])
        return ids

    def fork(self) -> LocalSession:
        """An independent session that stands where this one stands; it draws random numbers of its own."""
        made = LocalSession(self._policy, self._context, self._line.fork())
        made._shown, made._own_turns, made._before = self._shown, self._own_turns, list(self._before)
        made._mask, made._logprobs, made._heats = list(self._mask), list(self._logprobs), list(self._heats)
        return made

    async def aclose(self) -> None:
        """Give the cache row back."""
        self._line.close()


def given_ids(turn: Turn, chat: Chat) -> list[int]:
    """The ids of a turn that was given: those it was sampled with, else the canonical ones."""
    if (tokens := turn.tokens) is not None and tokens.ids and tokens.ids[-1] in chat.end_ids:
        begin = len(tokens.ids)
        while begin and tokens.mask[begin - 1]:
            begin -= 1
        if begin < len(tokens.ids):
            return list(tokens.ids[begin:])
    return chat.turn_ids(turn.message)


def _backend(directory: ModelDirectory, device: str) -> Backend:
    if device == "cpu" and understands(directory.config):
        return Llama(LlamaShape.of(directory.config), directory.weights)
    from mcpgym_rl.local.hugging_face import load

    return load(directory, device)


def _plain_llama(model: Any) -> bool:
    """Whether the weights of a torch model are those of a Llama, as they are: no adapters, no device, no other type."""
    import torch

    return (
        type(model).__name__ == "LlamaForCausalLM"
        and understands(model.config.to_dict())
        and all(item.dtype == torch.float32 and item.device.type == "cpu" for item in model.parameters())
        and not any("lora_" in name for name, _ in model.named_parameters())
    )


def _views(model: Any) -> Mapping[str, Any]:
    """The parameters of a torch model as NumPy arrays that share their memory."""
    return {name: item.detach().numpy() for name, item in model.named_parameters()}


def make_local_policy(
    where: str, environment: Environment[Any, Any, Any] | None, options: Mapping[str, Any]
) -> LocalPolicy:
    """The policy for ``local:WHERE``: a directory, or the name of a model that the environment's package ships.

    Raises:
        ConfigurationError: there is no such model, or an option will not do.
    """
    known = {"temperature", "max_tokens", "min_p", "device", "rows"}
    for name in options:
        if name not in known:
            raise UnknownNameError("option of local policies", name, known)
    given = dict(options)
    if "max_tokens" in given:
        given["max_new_tokens"] = given.pop("max_tokens")
    return LocalPolicy(find_model(where, environment), name=f"local:{where}", **given)


def find_model(where: str, environment: Environment[Any, Any, Any] | None) -> Path:
    """The directory that ``local:WHERE`` means: a shipped model's name, else a path.

    Raises:
        ConfigurationError: there is none; the message says which models are shipped.
    """
    shipped = shipped_models(environment)
    if where in shipped:
        return shipped[where]
    path = Path(where).expanduser()
    if where and path.is_dir():
        return path
    offer = f"{environment.name} ships {', '.join(shipped) or 'none'}" if environment is not None else "none is shipped"
    raise ConfigurationError(f"local:{where}: there is no such model directory, and of models by name {offer}")


def shipped_models(environment: Environment[Any, Any, Any] | None) -> dict[str, Path]:
    """The models that stand beside an environment's module, in its folder ``models``, by name."""
    folder = None if environment is None else packaged_file(environment, MODELS)
    if folder is None or not folder.is_dir():
        return {}
    return {path.name: path for path in sorted(folder.iterdir()) if (path / "config.json").is_file()}
