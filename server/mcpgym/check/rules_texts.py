"""Rules about what the policy reads: tools that exist, and nothing that is hidden."""

from __future__ import annotations

import builtins
import dataclasses
import difflib
import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from mcpgym.check.plays import Place, Plan, Play, dump, play, show
from mcpgym.check.report import Report
from mcpgym.check.rules_plays import over
from mcpgym.check.rules_tasks import Make
from mcpgym.environment import Environment
from mcpgym.tasks import Task, derive_seed

_NAMED = re.compile(r"`([A-Za-z_][\w-]*)(\([^`]*\))?`|(?<![\w.`/\\])([a-z_][a-z0-9_]{2,})\(")
_FENCED = re.compile(r"```.*?(```|\Z)", re.DOTALL)
_BEFORE = re.compile(r"\b(call|calling|invoke|invoking|tools?)\s+(the\s+)?(tool\s+)?$", re.IGNORECASE)
_USE = re.compile(r"\b(use|using|with)\s+(the\s+)?$", re.IGNORECASE)
_AFTER = re.compile(r"^\s+tool\b", re.IGNORECASE)
_CODE = re.compile(
    r"\b(function|method|class|def|variable|module|library|command|file|tag)s?\s+(called\s+|named\s+)?$", re.I
)
_SECRET_KEY = re.compile(
    r"answer|solution|secret|seed|target|label|gold|expected|truth|hidden|password|token|canary", re.I
)
_GIVING_AWAY = re.compile(r"answer|solution|correct|expected|secret|hidden|should (be|have been)|target|gold", re.I)
_INNARDS = re.compile(r"Traceback \(most recent call last\)|<[\w.<>]+ object at 0x[0-9a-f]+>")
_REWARDED = re.compile(r"\breward\b\W{0,3}(is|was|of|so far)?\W{0,3}[-+]?\d", re.I)


def check_mentions(environment: Environment[Any, Any, Any], plays: Sequence[Play], report: Report) -> None:
    """Names in backticks or written as calls, which look like tools, are tools."""
    texts = {"instructions": environment.instructions}
    for tool in environment.tools.values():
        texts[f"description of {tool.name}"] = tool.description
    for one in plays:
        for message in one.transcript:
            if message["role"] in {"system", "user"}:
                texts.setdefault(f"{message['role']} message of {one.place}", message["content"])
    known = {*environment.tools, *(name.partition("__")[2] for name in environment.tools if "__" in name)}
    parameters = {name for tool in environment.tools.values() for name in tool.parser.schema["properties"]}
    for where, text in texts.items():
        for name in mentioned_tools(text, known, parameters):
            near = difflib.get_close_matches(name, known, n=1, cutoff=0.5)
            fix = f"write {near[0]!r}" if near else f"there is: {', '.join(sorted(known)) or 'no tool at all'}"
            report.add("prompt-tools", f"mentions {name!r}, which is no tool", where, fix)


def mentioned_tools(text: str, known: set[str], parameters: set[str]) -> Iterator[str]:
    """Names in ``text`` that a model would take for tools and that are none. Code in fences is left alone."""
    text = _FENCED.sub(" ", text)
    for match in _NAMED.finditer(text):
        ticked, call, bare = match.groups()
        name = ticked or bare
        if name in known or name in parameters or hasattr(builtins, name):
            continue
        before, after = text[max(0, match.start() - 40) : match.start()].rstrip("`'\""), text[match.end() :][:20]
        if _CODE.search(before):
            continue
        told = bool(_BEFORE.search(before) or _AFTER.match(after))
        if ticked and _USE.search(before):
            told |= bool(call) or "_" in name
        near = bool(difflib.get_close_matches(name, known, n=1, cutoff=0.7)) and (
            bool(call) or bool(bare) or "_" in name
        )
        if told or near:
            yield name


async def check_secrets(
    make: Make, places: Sequence[tuple[Place, Plan]], hostile: Sequence[str], report: Report
) -> None:
    """Play with an unguessable seed and a planted secret in ``task.info``, and look for both in all that was read."""
    environment = make()
    reference = {place: make().task_at(place.split, place.index) for place, _ in places}
    listings = dump(
        [tool.listing for tool in environment.tools.values()] + [t.title for t in environment.tools.values()]
    )
    fixed = {
        "tool schemas": listings,
        "instructions": environment.instructions,
        "the description in a prompt list": environment.description,
    }
    for place, plan in places:
        canary = Place(place.split, place.index, derive_seed("canary", place.split, place.index, place.seed) | 1 << 62)
        task = reference[place]
        planted = {"mcpgym_canary": f"canary-{derive_seed('planted', task.id):x}"}
        try:
            marked = dataclasses.replace(task, info={**task.info, **planted})
        except (TypeError, ValueError):  # a task class that cannot be copied
            marked = task
        environment.task_at = lambda split, index, row=marked: row  # type: ignore[method-assign,misc]
        one = await play(over(environment), canary, plan)
        report.episodes += 1
        if "reset" in one.broken:  # it may know its tasks by identity, or refuse other keys: play it as it is
            del environment.task_at
            one = await play(over(environment), canary, plan)
        texts = [(name, text, True, "") for name, text in fixed.items()]
        # Every client can read the tasks as MCP resources, whatever Environment.messages makes of them.
        texts.append(("prompt of the task itself", dump([*task.messages]), True, ""))
        said = ""
        for line in one.lines:
            refused = line.is_error or line.label == "prompt"
            texts.append((line.label, line.seen, refused, said))
            if line.act is not None:
                said += dump([line.act.arguments, line.act.text]) + line.seen
        for label, text, plain, already in texts:
            _check_text(
                text,
                plain,
                already,
                canary,
                marked,
                environment,
                one,
                f"{canary.split}[{canary.index}], {label}",
                report,
            )
    for text in hostile:
        if (found := _INNARDS.search(text)) is not None:
            report.add("secrets", f"shows {show(found[0], 80)!r}", "the answer to a refused call", _fix("the inside"))


def _check_text(
    text: str,
    plain: bool,
    already: str,
    place: Place,
    task: Task,
    environment: Environment[Any, Any, Any],
    one: Play,
    where: str,
    report: Report,
) -> None:
    for form in (str(place.seed), f"{place.seed:x}", f"{place.seed:,}"):
        if form in text.lower():
            report.add("secrets", f"shows the episode's seed, {form}", where, _fix("the seed"))
    for key, value in hidden_values(task.info):
        if value not in text or value in already:
            continue
        before = text[max(0, text.index(value) - 40) : text.index(value)]
        grave = key == "mcpgym_canary" or "seed" in key.lower()
        if grave or (_SECRET_KEY.search(key) and (plain or _GIVING_AWAY.search(before))):
            what = "task.info as a whole" if key == "mcpgym_canary" else f"task.info[{key!r}]"
            report.add("secrets", f"shows {what}: {show(value, 60)!r}", where, _fix(what))
    if (found := _INNARDS.search(text)) is not None:
        report.add("secrets", f"shows {show(found[0], 80)!r}", where, _fix("the inside of the program"))
    if "prompt" in where or "schemas" in where or "instructions" in where:
        return
    if _REWARDED.search(text):
        report.add("secrets", f"tells a reward: {show(text, 80)!r}", where, _fix("the reward"))
    for name, reward in environment.rewards.items():
        paid = None if one.score is None else one.score.components.get(name)
        told = re.search(rf"(?<!\w){re.escape(name)}(?!\w)[\"']?\s*(reward)?\s*(is|[:=])\s*[-+]?\d", text, re.I)
        exact = paid is not None and len(repr(paid)) >= 8 and repr(paid) in text
        if told or exact:
            problem = f"tells the reward {name!r} (weight {reward.weight:g}): {show(text, 80)!r}"
            report.add("secrets", problem, where, _fix("the reward"))


def hidden_values(info: Mapping[str, Any]) -> Iterator[tuple[str, str]]:
    """What is in ``info``, key by key, where it is long enough that meeting it elsewhere is no accident."""

    def walk(key: str, value: Any) -> Iterator[tuple[str, str]]:
        match value:
            case Mapping():
                for inner, item in value.items():
                    yield from walk(f"{key}.{inner}" if key else str(inner), item)
            case list() | tuple() | set() | frozenset():
                for item in value:
                    yield from walk(key, item)
            case bool() | None:
                return
            case int() | float() if len(str(abs(value))) >= 6:
                yield key, str(value)
            case str() if len(value.strip()) >= 6:
                yield key, value

    yield from walk("", info)


def _fix(what: str) -> str:
    return f"keep {what} out of prompts, answers and errors: what the policy reads, it optimises"
