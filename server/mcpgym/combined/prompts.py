"""What a policy reads of a combination: one system and one user message, with a part for each member.

A part begins with a line ``## MOUNT``. Where a member's own text has such a line, it gets a space in front, so that
what begins with one is always a part.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence

from mcpgym.combined.naming import SEPARATOR, Tools, mentions, unmentioned
from mcpgym.messages import Message, system, user
from mcpgym.schema import MAX_INSTRUCTIONS

_HEADING = re.compile(r"^##[ \t]+(\S+)[ \t]*$", re.MULTILINE)
_TOOLS = re.compile(r"\A(?:Its tools: [^\n]*|It has no tools: answer it in text\.|\([^\n]*\))(?:\n\n|\Z)")
_OVER = re.compile(r"^\((\w+) is over\.", re.MULTILINE)


def head(mounts: Sequence[str]) -> str:
    """How to read the rest, and how to answer."""
    return (
        f"There are {len(mounts)} tasks to do: {', '.join(mounts)}. Each has its own part below and its own score. "
        f"The tools of a task begin with its name and {SEPARATOR}; what they say may leave that out. "
        "A turn without a tool call is your answer to every task that is not over. "
        f"To answer only one of them, begin the answer with its heading, a line that is `## {mounts[-1]}`."
    )


def compose(prompts: Mapping[str, Sequence[Message]], tools: Tools, notes: Mapping[str, str]) -> list[Message]:
    """The prompt of an episode, from those of its members. ``notes`` says what is over before it begins."""
    mounts = list(prompts)
    systems, users = [head(mounts)], []
    for mount, messages in prompts.items():
        told = [message["content"] for message in messages if message["role"] == "system"]
        if told:
            systems.append(_section(mount, mentions("\n\n".join(told), mount, tools[mount]), mounts))
        said = said_by_user([message for message in messages if message["role"] != "system"])
        listed = notes.get(mount) or _tools_line(mount, tools[mount])
        users.append(_section(mount, mentions(said, mount, tools[mount]), mounts, listed))
    return [system("\n\n".join(systems)), user("\n\n".join(users))]


def instructions(texts: Mapping[str, str], tools: Tools) -> str:
    """What clients show their models: the members' instructions; the longest are left out where they are too long."""
    mounts = list(texts)
    parts = {
        mount: _section(mount, mentions(text, mount, tools[mount]), mounts) for mount, text in texts.items() if text
    }
    while len((whole := "\n\n".join([head(mounts), *parts.values()])).encode()) > MAX_INSTRUCTIONS and parts:
        del parts[max(parts, key=lambda mount: len(parts[mount]))]
    return whole


def replies(said: Mapping[str, Sequence[Message]], notes: Iterable[str], mounts: Sequence[str]) -> list[Message]:
    """One user message: what each member says, under its heading, and what is over."""
    parts = [_section(mount, said_by_user(messages), mounts) for mount, messages in said.items()]
    return [user("\n\n".join([*parts, *(["\n".join(notes)] if notes else [])]))]


def said_by_user(messages: Sequence[Message]) -> str:
    """The text of messages that a member has the user say; who else speaks in them is said in front."""
    if all(message["role"] == "user" for message in messages):
        return "\n\n".join(message["content"] for message in messages)
    return "\n\n".join(f"[{message['role']}]\n{message['content']}" for message in messages)


def sections(text: str, mounts: Iterable[str]) -> tuple[str, dict[str, str]]:
    """What stands before the first heading, and the text under each; of one that comes twice, both."""
    known, found = {*mounts}, [*_HEADING.finditer(text)]
    found = [heading for heading in found if heading[1] in known]
    if not found:
        return text, {}
    parts: dict[str, str] = {}
    for heading, following in zip(found, [*found[1:], None], strict=True):
        body = text[heading.end() : None if following is None else following.start()].strip("\n")
        parts[heading[1]] = f"{parts[heading[1]]}\n{body}" if heading[1] in parts else body
    return text[: found[0].start()], parts


def addressed(text: str, mounts: Iterable[str]) -> dict[str, str] | None:
    """What an answer says to each task that it has a heading for; None where it has none, and says all of it to all.

    What stands before the first heading (a thought, say) is said to each of them.
    """
    before, parts = sections(text, mounts)
    if not parts:
        return None
    first = f"{before.strip()}\n" if before.strip() else ""
    return {mount: first + body for mount, body in parts.items()}


def own_prompt(messages: Sequence[Message], mount: str, tools: Tools) -> list[Message]:
    """The prompt of one member, read out of that of the combination."""
    prompt: list[Message] = []
    for message in messages:
        _, parts = sections(message["content"], tools)
        if mount not in parts:
            continue
        body = parts[mount]
        if message["role"] == "user":
            body = _TOOLS.sub("", body, count=1)
        prompt.append({**message, "content": unmentioned(_unescaped(body, tools), mount, tools[mount])})
    return prompt


def own_reply(message: Message, mount: str, tools: Tools) -> list[Message]:
    """What one member says in a message that :func:`replies` made."""
    _, parts = sections(message["content"], tools)
    if mount not in parts:
        return []
    body = re.sub(r"(?:\n*^\(\w+ is over\.[^\n]*\)$)+\Z", "", parts[mount], flags=re.MULTILINE)
    return [{**message, "content": _unescaped(body, tools)}]


def found_over(text: str) -> list[str]:
    """The mounts of the parts that ``text`` says are over."""
    return _OVER.findall(text)


def _section(mount: str, text: str, mounts: Sequence[str], first: str = "") -> str:
    escaped = re.sub(rf"^( *##[ \t]+(?:{'|'.join(mounts)})[ \t]*)$", r" \1", text, flags=re.MULTILINE)
    body = "\n\n".join(part for part in (first, escaped) if part)
    return f"## {mount}\n{body}"


def _unescaped(text: str, mounts: Iterable[str]) -> str:
    return re.sub(rf"^ ( *##[ \t]+(?:{'|'.join(mounts)})[ \t]*)$", r"\1", text, flags=re.MULTILINE)


def _tools_line(mount: str, tools: Sequence[str]) -> str:
    if not tools:
        return "It has no tools: answer it in text."
    return f"Its tools: {', '.join(f'{mount}{SEPARATOR}{tool}' for tool in tools)}"
