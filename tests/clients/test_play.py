"""``mcpgym play``: a person's hands are a pipe here, everything else is real."""

from __future__ import annotations

import asyncio
import os
import pty
import re
import select
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from mcpgym import load_environment
from mcpgym.episodes import Episodes
from mcpgym.serving import serving
from mcpgym_clients.boards import draw, read_board
from mcpgym_clients.connection import own_server
from mcpgym_clients.forms import read_value

FIXED = ["play", "tic-tac-toe", "--split", "test", "--index", "3", "--seed", "1"]
ALL_CELLS = "".join(f"{cell}\n" for cell in range(9))


def test_a_game_is_played_to_its_end_through_mcp(process: Callable) -> None:
    done = process(*FIXED, stdin=ALL_CELLS)
    assert done.returncode == 0, done.stderr
    assert "A new game begins" in done.stdout
    assert "┼" in done.stdout
    assert "Game over" in done.stdout
    assert re.search(r"You (won|lost)\.|A draw\.", done.stdout)
    assert re.search(r"Score -?\d", done.stdout)
    assert "mcpgym play tic-tac-toe --task test-3 --seed 1" in done.stdout


@pytest.mark.parametrize("of_a_player", [True, False])
def test_a_player_is_not_told_that_the_event_loop_is_late_and_an_operator_is(
    of_a_player: bool, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr("mcpgym.metrics.WARN_SECONDS", 0.2)

    async def work() -> None:
        own = own_server(load_environment("reverse-text")) if of_a_player else serving(Episodes({}))
        async with own:
            await asyncio.sleep(0)
            time.sleep(1)
            await asyncio.sleep(0.3)

    asyncio.run(work())
    assert ("the event loop stood still" in caplog.text) is not of_a_player


def test_the_same_seed_is_the_same_game(process: Callable) -> None:
    first, second = (process(*FIXED, stdin=ALL_CELLS).stdout for _ in range(2))
    assert first == second
    by_task = process("play", "tic-tac-toe", "--task", "test-3", "--seed", "1", stdin=ALL_CELLS).stdout
    assert by_task == first


def test_an_illegal_move_is_told_and_costs(process: Callable) -> None:
    done = process(*FIXED, stdin="4\n4\n" + ALL_CELLS)
    assert "Cell 4 is taken by X" in done.stdout
    assert "invalid_move -0.1" in done.stdout


def test_what_is_no_number_is_asked_again_and_costs_nothing(process: Callable) -> None:
    legal = "".join(line + "\n" for line in ("four", "", "4.5"))
    done = process(*FIXED, "--config", "max_random_move_prob=0", stdin=legal + "4\n")
    assert done.stdout.count("a whole number, please") == 3
    assert "You played 4" in done.stdout


@pytest.mark.parametrize("stdin", ["", "4\n", "4"])
def test_the_end_of_the_input_leaves_in_peace(process: Callable, stdin: str) -> None:
    done = process(*FIXED, stdin=stdin)
    assert done.returncode == 0, done.stderr
    assert "You left before the end" in done.stdout
    assert "Score" not in done.stdout


def test_input_may_be_a_file(tmp_path: Path) -> None:
    (tmp_path / "moves").write_text(ALL_CELLS)
    with (tmp_path / "moves").open() as moves:
        done = subprocess.run(
            [sys.executable, "-m", "mcpgym_clients", *FIXED], stdin=moves, capture_output=True, text=True, timeout=60
        )
    assert done.returncode == 0, done.stderr
    assert "Game over" in done.stdout


def test_the_limit_on_turns_is_told(process: Callable) -> None:
    done = process(*FIXED, "--config", "max_turns=2", stdin="4\n4\n")
    assert "That was the last turn that you had." in done.stdout
    assert "last turn" not in process(*FIXED, stdin=ALL_CELLS).stdout


def test_words_where_a_number_belongs_are_told_how_to_speak(process: Callable) -> None:
    done = process(*FIXED, stdin="I give up\n/say I give up\n")
    assert "a whole number, please (/say WORDS answers in words instead)" in done.stdout
    assert "Score" in done.stdout


def test_an_environment_without_tools_is_answered_in_words(process: Callable) -> None:
    done = process("play", "reverse-text", "--index", "0", "--seed", "0", stdin="<reversed_text>x</reversed_text>\n")
    assert done.returncode == 0, done.stderr
    assert "your answer" in done.stdout
    assert re.search(r"Score 0?\.?\d", done.stdout)


def test_an_environment_that_answers_goes_on(process: Callable) -> None:
    done = process("play", "double-check", "--index", "0", stdin="<answer>1</answer>\n<answer>2</answer>\n")
    assert done.returncode == 0, done.stderr
    assert done.stdout.count("Are you sure?") == 1
    assert done.stdout.count("your answer") == 2
    assert "Score" in done.stdout


SHOP = """
from typing import Annotated, Literal
from mcpgym import Environment, LazyTasks, Task, reward, task_id, tool
from mcpgym.messages import user

class Shop(Environment):
    "Several tools, with arguments of every kind."
    name = "shop"
    def tasks(self, split):
        return LazyTasks(3, lambda i: Task(task_id(split, i), split, (user("Buy something."),)))
    def reset(self, task, seed): return []
    @tool
    def look(self, state) -> str:
        "Look around."
        state.append("look")
        return "\\x1b[31mapples\\x1b[0m"
    @tool
    def buy(
        self, state,
        what: Annotated[Literal["apple", "pear"], "What to buy."],
        gift: Annotated[bool, "Whether to wrap it."],
        weights: Annotated[list[float], "Kilograms of each."],
        note: Annotated[str, "A note."] = "none",
    ) -> str:
        "Buy fruit."
        state.append([what, gift, weights, note])
        return repr(state[-1])
    def is_done(self, state): return len(state) == 3
    @reward
    def bought(self, state) -> float: return 1.0
"""


def test_any_environment_can_be_played_by_its_schemas(process: Callable, tmp_path: Path) -> None:
    (tmp_path / "shop.py").write_text(SHOP)
    words = ["9", "look", "2", "plum", "pear", "perhaps", "yes", "1.5, 2", "", "buy", "apple", "n", "[3]", "hi there"]
    done = process("play", "shop:Shop", stdin="".join(f"{word}\n" for word in words))
    assert done.returncode == 0, done.stderr
    assert "a number from 1 to 2" in done.stdout
    assert "one of apple, pear, please" in done.stdout
    assert "yes or no, please" in done.stdout
    assert "['pear', True, [1.5, 2.0], 'none']" in done.stdout
    assert "['apple', False, [3.0], 'hi there']" in done.stdout
    assert "Score 1" in done.stdout
    assert "\x1b" not in done.stdout  # what an environment says cannot command the terminal


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        (["play", "tic-tac-to"], "did you mean 'tic-tac-toe'"),
        (["play", "tic-tac-toe", "--task", "test-99999"], "test-99999"),
        (["play", "tic-tac-toe", "--task", "test-1", "--index", "2"], "not by both"),
        (["play", "tic-tac-toe", "--split", "dev"], "test, train"),
        (["play", "tic-tac-toe", "--index", "1000"], "0 to 999"),
        (["play", "tic-tac-toe", "--config", "policy_moves=third"], "policy_moves"),
        (["play", "tic-tac-toe", "--server", "unix:/nowhere.sock"], "MCPGYM_CONTROL_SECRET"),
    ],
)
def test_what_cannot_be_played_is_said_in_one_line(command: Callable, arguments: list[str], says: str) -> None:
    code, _, err = command(*arguments)
    assert code == 2
    assert err.startswith("error: ")
    assert err.count("\n") == 1
    assert says in err


def _until(terminal: int, wanted: str, seconds: float = 20) -> str:
    seen = ""
    deadline = time.monotonic() + seconds
    while wanted not in seen and time.monotonic() < deadline:
        if select.select([terminal], [], [], 0.1)[0]:
            try:
                seen += os.read(terminal, 65536).decode("utf-8", "replace")
            except OSError:
                break
    return seen


def test_on_a_terminal_ctrl_c_ends_it_at_once_and_ctrl_d_leaves(tmp_path: Path) -> None:
    for end, code, says in ((b"\x03", 130, "You left"), (b"\x04", 0, "You left")):
        master, slave = pty.openpty()
        process = subprocess.Popen(
            [sys.executable, "-m", "mcpgym_clients", *FIXED],
            stdin=slave, stdout=slave, stderr=slave, start_new_session=True, cwd=tmp_path,
            preexec_fn=lambda: _control_terminal(),
        )  # fmt: skip
        os.close(slave)
        assert "play position" in _until(master, "play position")
        os.write(master, b"4\n")
        assert "You played 4" in _until(master, "Your turn.")
        _until(master, "play position")
        os.write(master, end)
        shown = _until(master, "left before the end.")
        assert process.wait(timeout=10) == code
        assert says in shown
        assert "Traceback" not in shown
        os.close(master)


NOTES = """
from typing import Annotated
from pydantic import Field
from mcpgym import Environment, LazyTasks, Task, reward, task_id, tool
from mcpgym.messages import user

class Notes(Environment):
    "Takes texts of several lines."
    name = "notes"
    def tasks(self, split):
        return LazyTasks(3, lambda i: Task(task_id(split, i), split, (user("Write."),)))
    def reset(self, task, seed): return []
    @tool
    def write(self, state, text: Annotated[str, Field(max_length=100_000), "The text."]) -> str:
        "Write a note."
        state.append(text)
        return repr(text)
    def is_done(self, state): return len(state) == 2
    @reward
    def written(self, state) -> float: return 1.0
"""


def test_several_lines_are_typed_between_two_marks(process: Callable, tmp_path: Path) -> None:
    (tmp_path / "notes.py").write_text(NOTES)
    done = process("play", "notes:Notes", stdin="one = 1\n/lines\nif one:\n    /say\n\n    two\n /end\n")
    assert done.returncode == 0, done.stderr
    assert "/lines for several lines" in done.stdout
    assert "'one = 1'" in done.stdout  # a pipe is no paste: one line is one answer
    assert r"'if one:\n    /say\n\n    two\n'" in done.stdout
    assert "Score 1" in done.stdout


def test_what_is_pasted_into_a_terminal_is_one_text(tmp_path: Path) -> None:
    (tmp_path / "notes.py").write_text(NOTES)
    master, slave = pty.openpty()
    process = subprocess.Popen(
        [sys.executable, "-m", "mcpgym_clients", "play", "notes:Notes"],
        stdin=slave, stdout=slave, stderr=slave, start_new_session=True, cwd=tmp_path,
    )  # fmt: skip
    os.close(slave)
    assert "write text" in _until(master, "paste it")
    os.write(master, b"def f():\n    return 1\nprint(f())")
    assert "/end on a line of its own" in _until(master, "ends it")
    os.write(master, b"\n/end\n")
    assert r"'def f():\n    return 1\nprint(f())\n'" in _until(master, "write text")
    os.write(master, b"one line\n")
    assert "(written 1)" in _until(master, "same again")
    assert process.wait(timeout=10) == 0
    os.close(master)


def _control_terminal() -> None:
    import fcntl
    import termios

    fcntl.ioctl(0, termios.TIOCSCTTY, 0)
    signal.signal(signal.SIGINT, signal.default_int_handler)


@pytest.mark.parametrize(
    ("text", "schema", "value"),
    [
        (" 4 ", {"type": "integer"}, 4),
        ("-0.5", {"type": "number"}, -0.5),
        ("4 ", {"type": "string"}, "4 "),
        ("Yes", {"type": "boolean"}, True),
        ("2", {"type": "integer", "enum": [1, 2]}, 2),
        ("pear", {"type": "string", "enum": ["pear"]}, "pear"),
        ("1,2", {"type": "array", "items": {"type": "integer"}}, [1, 2]),
        ("", {"type": "array", "items": {"type": "integer"}}, []),
        ('["a,b"]', {"type": "array", "items": {"type": "string"}}, ["a,b"]),
        ('{"a": 1}', {"type": "object"}, {"a": 1}),
    ],
)
def test_what_is_typed_becomes_what_the_schema_asks_for(text: str, schema: dict, value: object) -> None:
    assert read_value(text, schema) == value


@pytest.mark.parametrize(
    ("text", "kind"),
    [("x", "integer"), ("1.0", "integer"), ("nan", "number"), ("inf", "number"), ("?", "boolean"), ("{", "object")],
)
def test_what_cannot_be_read_is_refused_with_what_would_be_right(text: str, kind: str) -> None:
    with pytest.raises(ValueError, match="please"):
        read_value(text, {"type": kind})


def test_boards_are_read_from_what_the_environment_says() -> None:
    """Every board of a real game, against the grid beside it."""
    import asyncio

    from mcpgym.episodes import Episodes

    async def play() -> list[str]:
        episodes = Episodes.of("tic-tac-toe")
        episode = await episodes.open("tic-tac-toe", split="test", index=2)
        texts = [str(episode.messages[-1]["content"])]
        texts += [(await episode.call("play", {"position": cell})).text for cell in range(9)]
        return texts

    boards = 0
    for text in asyncio.run(play()):
        grid = re.findall(r"^[XO.] [XO.] [XO.]$", text, re.MULTILINE)
        if len(grid) == 3:
            boards += 1
            assert read_board(text) == "".join(grid).replace(" ", "")
    assert boards >= 3
    assert read_board("no board here") is None
    assert read_board("X 9 · O none · free 1") is None


def test_a_board_shows_marks_and_the_numbers_of_free_cells() -> None:
    assert draw("XO.......").plain.splitlines()[0] == " X │ O │ 2 "


def test_case_13_a_server_that_dies_in_mid_game_is_told_in_a_line(tmp_path: Path) -> None:
    variables = {**os.environ, "MCPGYM_CONTROL_SECRET": "a-secret-of-this-test-alone"}
    socket = tmp_path / "c.sock"
    pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "stderr": subprocess.PIPE, "text": True}
    base = [sys.executable, "-m", "mcpgym_clients"]
    server = subprocess.Popen(
        [*base, "serve", "tic-tac-toe", "--port", "0", "--control-socket", str(socket)], env=variables, **pipes
    )
    while "Stop with" not in server.stderr.readline():
        pass
    player = subprocess.Popen([*base, *FIXED, "--server", f"unix:{socket}"], env=variables, cwd=tmp_path, **pipes)
    player.stdin.write("4\n")
    player.stdin.flush()
    while "Your turn" not in player.stdout.readline():
        pass
    server.kill()
    server.communicate(timeout=10)
    _, err = player.communicate("0\n1\n", timeout=30)
    assert player.returncode == 1
    assert err.startswith("error: ")
    assert err.count("\n") == 1
