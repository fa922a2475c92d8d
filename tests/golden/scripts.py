"""What is played besides the environments' own policies: illegal moves, malformed calls, silence, turns cut off."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from random import Random
from typing import Any

from mcpgym import Environment
from mcpgym.check.arguments import valid_arguments
from mcpgym.messages import assistant, tool_call
from mcpgym_rl.policies.script import ScriptedPolicy
from mcpgym_rl.policy import Policy, Turn
from mcpgym_rl.rollout import Limits


@dataclass(frozen=True)
class Part:
    """A policy, the task and the configuration it plays, and under which limits."""

    policy: Policy
    index: int = 0
    split: str = "test"
    seed: int = 0
    config: Mapping[str, Any] = field(default_factory=dict)
    limits: Limits = field(default_factory=Limits)


CONFIGURATIONS: Mapping[str, Sequence[Mapping[str, Any]]] = {
    "tic-tac-toe": [
        {"illegal_move_loses": True},
        {"policy_moves": "second", "best_move": "first", "max_random_move_prob": 0.0},
        {"max_turns": 2},
    ],
    "reverse-text": [{"test_tasks": 3}],
    "double-check": [{"train_tasks": 7}],
    "reverse-text+tic-tac-toe": [
        {"ends": "any", "weights": {"reverse_text": 3.0}},
        {"tic_tac_toe.max_turns": 2, "lengths": "longest"},
    ],
    "wiki-search": [
        {"thoughts": True, "max_lookups": 6, "results": 2, "section_characters": 200},
        {"kinds": "chain", "max_hops": 2, "max_characters": 1_000},
        {"questions": "open"},
    ],
    "python-sandbox": [
        {"thoughts": True, "max_calls": 1, "families": "compute", "max_level": 2},
        {"families": "function,debug", "min_level": 3, "output_characters": 200},
        {"tasks": "open"},
    ],
    "long-context": [
        {"sub_model": "none", "families": "ledger", "max_runs": 2},
        {"families": "tally", "max_level": 1, "window": 4_000, "sub_calls": 10, "output_characters": 200},
    ],
    "gymnasium": [
        {"id": "Taxi-v4", "max_steps": 6},
        {"id": "Blackjack-v1", "show": "values", "lowest": -1, "highest": 1},
    ],
    "bfcl": [{"category": "miss_func"}, {"apis": "MathAPI,GorillaFileSystem", "calls_per_turn": 2}],
}
"""Configurations that are played besides the default."""


def _code(text: str) -> dict[str, Any]:
    return {"name": "run_python", "arguments": {"code": text}}


OWN: Mapping[str, Mapping[str, Sequence[Any]]] = {
    "tic-tac-toe": {
        "illegal": [{"name": "play", "arguments": {"position": cell}} for cell in (4, 4, 9, -1, 10**30, 0, 8, 8)],
        "mistyped": [{"name": "play", "arguments": {"position": cell}} for cell in ("4", "four", 4.5, True, None, [4])],
    },
    "reverse-text": {
        "two answers": ["<reversed_text>abc</reversed_text> or <reversed_text>cba</reversed_text>"],
        "no tags": ["tac"],
        "far too long": [f"<reversed_text>{'abc' * 200}</reversed_text>"],
        "no tool here": [{"name": "reverse", "arguments": {"text": "cat"}}, "<reversed_text>tac</reversed_text>"],
    },
    "double-check": {
        "changes its mind": ["<answer>1</answer>", "<answer>2</answer>"],
        "odd numbers": ["<answer>1,000</answer>", "<answer>\N{ARABIC-INDIC DIGIT FOUR}</answer>"],
        "no tool here": [{"name": "answer", "arguments": {"number": 4}}, "<answer>4</answer>", "<answer>4</answer>"],
    },
    "reverse-text+tic-tac-toe": {
        "one after the other": [
            "<think>the text first</think>\n## reverse_text\n<reversed_text>tac</reversed_text>",
            *({"name": "tic_tac_toe__play", "arguments": {"position": cell}} for cell in (4, 4, "0", 0, 8, 2, 6)),
        ],
        "its own name": [
            {"name": "play", "arguments": {"position": 4}},
            "## reverse_text\ntac",
            "## reverse_text\ncat",
        ],
        "answers at once": ["<reversed_text>tac</reversed_text>"],
    },
    "wiki-search": {
        "looks around": [
            {"name": "search_pages", "arguments": {"query": "the longest river of a country"}},
            {"name": "search_pages", "arguments": {"query": '"no such phrase" OR (NEAR* ^ -'}},
            {"name": "view_sections", "arguments": {"page_id": "p100"}},
            {"name": "read_section", "arguments": {"section_id": "p100.1"}},
            {"name": "read_section", "arguments": {"section_id": "p100.1", "part": 2}},
            {"name": "submit_answer", "arguments": {"answer": "not answerable"}},
        ],
        "wrong ids": [
            {"name": "view_sections", "arguments": {"page_id": "p999999999"}},
            {"name": "view_sections", "arguments": {"page_id": "p100.1"}},
            {"name": "view_sections", "arguments": {"page_id": "Sea"}},
            {"name": "read_section", "arguments": {"section_id": "p100"}},
            {"name": "read_section", "arguments": {"section_id": "p100.77"}},
            {"name": "read_section", "arguments": {"section_id": "p100.1", "part": 0}},
        ],
        "two answers": [
            {"name": "submit_answer", "arguments": {"answer": " "}},
            {"name": "submit_answer", "arguments": {"answer": "yes or no"}},
            {"name": "submit_answer", "arguments": {"answer": "no"}},
        ],
        "says it only": ["The answer is 42."],
    },
    "python-sandbox": {
        "notebook": [
            _code("x = 6 * 7\nprint('so:')\nx"),
            _code("def f(n):\n    return x / n\n\nf(0)"),
            _code("import random, sys\nprint(random.random(), hash('x'), file=sys.stderr)"),
            {"name": "write_file", "arguments": {"path": "notes/a.txt", "text": "one\ntwo\n"}},
            _code("open('b.txt', 'w').write(open('notes/a.txt').read() * 900)"),
            {"name": "list_files", "arguments": {}},
            {"name": "read_file", "arguments": {"path": "b.txt"}},
            {"name": "read_file", "arguments": {"path": "/work/b.txt", "offset": 7_190}},
            {"name": "submit", "arguments": {"answer": "42"}},
        ],
        "ends Python": [
            _code("x = 1"),
            _code("import os\nprint('last words', flush=True)\nos._exit(3)"),
            _code("x"),
            _code("raise SystemExit(4)"),
            _code("import ctypes\nctypes.string_at(0)"),
        ],
        "odd output": [
            _code("for number in range(20_000):\n    print(number)"),
            _code("print('\\x1b[31mred\\x1b[0m', '\\u202e', '\\x00', 'over\\rwritten')"),
            _code("import sys\nsys.stdout.buffer.write(b'\\xff\\xfe raw')\nprint(' \\ud800')"),
            _code("raise ValueError('[killed: not really]')"),
        ],
        "wrong paths": [
            {"name": "read_file", "arguments": {"path": path}} for path in ("nothing.txt", "/etc/passwd", "../x", ".")
        ]
        + [
            _code("open('data.bin', 'wb').write(b'ab\\0')"),
            {"name": "read_file", "arguments": {"path": "data.bin"}},
            {"name": "write_file", "arguments": {"path": "/tmp/x", "text": "x"}},
            {"name": "read_file", "arguments": {"path": "data.bin", "offset": 99}},
        ],
        "nothing to submit": [
            {"name": "submit", "arguments": {}},
            {"name": "submit", "arguments": {"answer": " "}},
            {"name": "write_file", "arguments": {"path": "solution.py", "text": "raise SystemExit\n"}},
            {"name": "submit", "arguments": {"answer": "nothing"}},
        ],
        "says it only": ["The answer is 42."],
    },
    "long-context": {
        "looks around": [
            _code("print(len(context))\ncontext[:300]"),
            _code("llm('Who has it?')"),
            _code(
                "asked = 'To whom did Tavel Mornick give the lantern? Answer with the name, or none.'\n"
                "llm_batch([f'{context[start:start + 9_000]}\\nQuestion: {asked}' for start in (0, 9_000)])"
            ),
            _code("print(context)"),
            {"name": "submit", "arguments": {"answer": ""}},
            {"name": "submit", "arguments": {"answer": "Tavel Mornick"}},
        ],
        "asks what it may not": [
            _code("llm(context)"),
            _code("llm_batch(['x'] * 2_001)"),
            _code("llm(5)"),
            _code("llm('\\ud800')"),
        ],
        "loses the text": [
            _code("context = None\nopen('context.txt', 'w').close()"),
            _code("import os\nos._exit(1)"),
            _code("context.count('.')"),
        ],
        "says it only": ["The answer is 42."],
    },
}
"""Turns that only one environment can be given."""


def scripts(environment: Environment[Any, Any, Any]) -> dict[str, list[Turn]]:
    """Turns by the name of their policy."""
    tools = list(environment.tools.values())
    made: dict[str, Sequence[Any]] = {"silent": ["", "", "Let me think.", "<think>Hm.</think>", "I give up."]}
    if tools:
        random = Random(environment.name)
        drawn = [random.choice(tools) for _ in range(12)]
        calls = [{"name": tool.name, "arguments": valid_arguments(tool.parser.schema, random)} for tool in drawn]
        made |= {"careless": calls, "malformed": _malformed(calls[0]), "several at once": _several(calls)}
    made |= OWN.get(environment.name, {})
    return {name: ScriptedPolicy(turns).turns for name, turns in made.items()}


def _malformed(call: Mapping[str, Any]) -> list[Any]:
    name, arguments = call["name"], call["arguments"]
    deep = "[" * 70 + "]" * 70
    texts = ["", "{", '{"a": 1', "[]", "null", "4", '{"a": 1} {"b": 2}', '{"a": 1, "a": 2}', '{"a": 1e999}', "play(4)"]
    turns: list[Any] = [assistant("", [tool_call("c", name, text)]) for text in texts]
    turns += [
        assistant("", [tool_call("c", name, f'{{"a": {deep}}}')]),
        assistant("", [tool_call("c", name, json.dumps({**arguments, "no_such_parameter": [1, {"a": "\u202e"}]}))]),
        assistant("", [tool_call("c", "", json.dumps(arguments))]),
        assistant("", [tool_call("c", "no_such_tool", "{}")]),
        assistant("Half a surrogate pair: \ud83d.", [tool_call("c", f"{name} ", '{"a": "\\ud83d"}')]),
        {
            "role": "assistant",
            "content": "",
            "tool_calls": [{"function": {"name": name, "arguments": None}}, "play(4)"],
        },
    ]
    return turns


def _several(calls: Sequence[Mapping[str, Any]]) -> list[Any]:
    same = [tool_call("c", call["name"], json.dumps(call["arguments"])) for call in calls[:3]]
    return [
        {"text": "Two at once.", "calls": calls[:2]},
        assistant("Three with one id.", same),
        {"text": "One that is not there, and one that is.", "calls": [{"name": "nothing"}, calls[3]]},
    ]
