"""What a client changed in our tools before its model saw them: found by comparing, told in few words."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from mcpgym.schema import canonical_json

MEMBERS = ("name", "description", "inputSchema")


def prefix_of(ours: Sequence[Mapping[str, Any]], theirs: Sequence[Mapping[str, Any]]) -> str:
    """What a client puts before the names of all tools; empty where it leaves them alone, or not all alike."""
    for name in (str(tool["name"]) for tool in ours):
        for other in (str(tool["name"]) for tool in theirs):
            prefix = other.removesuffix(name)
            if other.endswith(name) and {prefix + str(t["name"]) for t in ours} == {str(t["name"]) for t in theirs}:
                return prefix
    return ""


def differences(ours: Sequence[Mapping[str, Any]], theirs: Sequence[Mapping[str, Any]]) -> list[str]:
    """Each kind of change once, in order; empty when the model sees what we sent, members that we do not send apart.

    ``theirs`` are without the prefix that all of them may have.
    """
    found: set[str] = set()
    others = {str(tool["name"]): tool for tool in theirs}
    for tool in ours:
        other = others.pop(str(tool["name"]), None)
        if other is None:
            found.add(f"leaves out the tool `{tool['name']}`")
            continue
        if other["description"] != tool["description"]:
            found.add(f"describes `{tool['name']}` otherwise")
        found |= _changes(tool["inputSchema"], other["inputSchema"])
    return sorted(found | {f"adds the tool `{name}`" for name in others})


def additions(theirs: Sequence[Mapping[str, Any]]) -> list[str]:
    """What a client gives its model beside name, description and schema; whether with every tool is told."""
    extra = [{f"`{key}: {canonical_json(tool[key])}`" for key in tool.keys() - {*MEMBERS}} for tool in theirs]
    return sorted(
        f"adds {text} to {'every tool' if all(text in one for one in extra) else 'some tools'}"
        for text in set().union(*extra)
    )


def told(changes: Sequence[str]) -> str:
    """Changes as a list in one sentence; those of one kind share their verb."""
    verbs: dict[str, list[str]] = {}
    for change in changes:
        verb, _, what = change.partition(" ")
        verbs.setdefault(verb, []).append(what)
    return "; ".join(f"{verb} {', '.join(what)}" for verb, what in verbs.items())


def _changes(ours: Any, theirs: Any, key: str = "the schema", named: bool = False) -> set[str]:
    """The changes of one value; ``named`` where the keys are names of parameters and no keywords."""
    if isinstance(ours, Mapping) and isinstance(theirs, Mapping):
        found = set()
        what = (lambda name: f"the parameter `{name}`") if named else (lambda name: f"`{name}`")
        for name in ours.keys() | theirs.keys():
            if name not in theirs:
                found.add(f"drops {what(name)}")
            elif name not in ours:
                found.add(f"adds {what(name)}")
            else:
                found |= _changes(ours[name], theirs[name], what(name), named=name == "properties" and not named)
        return found
    if isinstance(ours, list) and isinstance(theirs, list) and len(ours) == len(theirs):
        return set().union(*(_changes(one, other, key) for one, other in zip(ours, theirs, strict=True)))
    return set() if canonical_json(ours) == canonical_json(theirs) else {f"changes {key}"}
