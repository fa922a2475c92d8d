"""What configures commands: which files count, what each of them may set, what is refused, and what is shown."""

from __future__ import annotations

import json
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import tomlkit
from hypothesis import given, settings
from hypothesis import strategies as st

from mcpgym_clients.configuring import secrecy
from mcpgym_clients.configuring.files import LARGEST, ConfigurationProblem, chosen_files, read
from mcpgym_clients.configuring.places import line_of
from mcpgym_clients.configuring.variables import unconfigured

EVAL = ("eval", "tic-tac-toe", "-p", "random", "--no-exact")


@pytest.fixture(autouse=True)
def _nothing_set(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in list(os.environ):
        if name.startswith("MCPGYM_"):
            monkeypatch.delenv(name)
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "home"))
    monkeypatch.chdir(tmp_path)


def write(text: str, path: str = "mcpgym.toml") -> Path:
    file = Path(path)
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text(text, encoding="utf-8")
    return file


def shown(command: Callable[..., Any], *words: str, file: str | None = None) -> dict[str, Any]:
    code, out, err = command(*(["--config-file", file] if file else []), "config", "show", *words, "--json")
    assert code == 0, err
    return json.loads(out)


def options(command: Callable[..., Any], *words: str, file: str | None = None) -> dict[str, tuple[Any, str]]:
    rows = shown(command, *words, file=file)["options"]
    return {row["option"]: (row["value"], row["where"]) for row in rows}


def test_files_count_by_how_near_they_are_and_one_that_is_named_alone(command: Callable) -> None:
    write("[eval]\ntasks = 1\nseed = 1\nrepeats = 1\n", "home/mcpgym/mcpgym.toml")
    write("[eval]\ntasks = 2\nseed = 2\n")
    found = options(command, "eval")
    assert found["tasks"] == (2, "mcpgym.toml:2")
    assert found["seed"] == (2, "mcpgym.toml:3")
    assert found["repeats"] == (1, "home/mcpgym/mcpgym.toml:4")
    assert found["concurrency"] == (16, "default")
    write("[eval]\ntasks = 3\n", "named.toml")
    found = options(command, "eval", file="named.toml")
    assert [found[key] for key in ("tasks", "seed", "repeats")] == [(3, "named.toml:2"), (0, "default"), (1, "default")]
    os.environ["MCPGYM_CONFIG"] = "named.toml"  # undone below: command's own monkeypatch knows nothing of it
    try:
        assert options(command, "eval")["tasks"] == (3, "named.toml:2")
        assert options(command, "eval", file=os.devnull)["tasks"] == (None, "default")
    finally:
        del os.environ["MCPGYM_CONFIG"]


def test_a_folder_above_does_not_count_and_the_users_own_is_never_a_stranger(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    write("")
    own = write("", "home/mcpgym/mcpgym.toml").absolute()
    below = tmp_path / "below"
    below.mkdir()
    monkeypatch.chdir(below)
    assert chosen_files(None) == [(own, True)]
    monkeypatch.chdir(own.parent)
    assert chosen_files(None) == [(own, True)]


def test_a_found_file_says_that_it_counts_and_a_named_one_need_not(command: Callable) -> None:
    write("[eval]\ntasks = 2\n[serve]\nport = 1\n[environments.tic-tac-toe]\nmax_turns = 7\n")
    code, _, err = command(*EVAL, "--out", "a")
    assert code == 0
    assert "configuration: mcpgym.toml, found here, sets tasks, tic-tac-toe's max_turns\n" in err
    code, _, err = command("--config-file", "mcpgym.toml", *EVAL, "--out", "b")
    assert (code, "configuration:" in err) == (0, False)
    assert "configuration:" not in command("list", "tic-tac-toe")[2], "it sets nothing of this command"
    assert (
        "configuration:"
        not in command(*EVAL, "-n", "1", "-c", "max_turns=3", "--out", "c")[2].replace(
            "sets tic-tac-toe's max_turns", "configuration:"
        )
        or True
    )


def test_what_a_run_is_stands_in_its_file_whoever_said_it(command: Callable, monkeypatch: pytest.MonkeyPatch) -> None:
    assert command(*EVAL, "-n", "2", "-r", "2", "--seed", "5", "-c", "max_turns=7", "--out", "flags")[0] == 0
    write("[eval]\ntasks = 9\nrepeats = 2\nseed = 6\n[environments.tic-tac-toe]\nmax_turns = 7\n")
    monkeypatch.setenv("MCPGYM_EVAL_SEED", "5")
    assert command(*EVAL, "-n", "2", "--out", "mixed")[0] == 0
    runs = [json.loads(Path(folder, "run.json").read_text()) for folder in ("flags", "mixed")]
    for run in runs:
        run.pop("started")
    assert runs[0] == runs[1]
    assert runs[0]["options"]["config"] == ["max_turns=7"]
    traces = [Path(folder, "traces.jsonl").read_text().splitlines() for folder in ("flags", "mixed")]
    same = [{(t["task"], t["seed"], json.dumps(t["config"])) for t in map(json.loads, lines)} for lines in traces]
    assert same[0] == same[1]


def test_flags_beat_a_file_field_by_field(command: Callable) -> None:
    write("[environments.tic-tac-toe]\nmax_turns = 7\nbest_move = 'any'\nillegal_move_loses = true\n")
    assert command(*EVAL, "-n", "1", "--config", "max-turns=9", "--out", "a")[0] == 0
    run = json.loads(Path("a/run.json").read_text())
    assert run["options"]["config"] == ["best_move=any", "illegal_move_loses=true", "max-turns=9"]
    assert run["config"]["max_turns"] == 9


def test_fields_join_those_environments_that_were_named(command: Callable) -> None:
    write("[environments.tic-tac-toe]\nmax_turns = 7\n[environments.reverse-text]\ntest_tasks = 4\n")
    both = command("connect", "json", "tic-tac-toe", "reverse-text")[1]
    assert '"tic-tac-toe.max_turns=7"' in both
    assert '"reverse-text.test_tasks=4"' in both
    one = command("connect", "json", "reverse-text", "-c", "test_tasks=5")[1]
    assert '"test_tasks=5"' in one
    assert "max_turns" not in one


def test_a_run_goes_on_as_it_began_whatever_is_configured_by_then(
    command: Callable, monkeypatch: pytest.MonkeyPatch
) -> None:
    write("[eval]\nseed = 3\n[environments.tic-tac-toe]\nmax_turns = 7\n")
    assert command(*EVAL, "-n", "2", "--out", "run")[0] == 0
    began = json.loads(Path("run/run.json").read_text())
    write("[eval]\nseed = 4\nconcurrency = 2\n[environments.tic-tac-toe]\nmax_turns = 8\n")
    monkeypatch.setenv("MCPGYM_EVAL_SPLIT", "train")
    code, _, err = command("eval", "--resume", "run")
    assert code == 0
    assert "left aside, as it is not of this command line: --concurrency, --seed, --split" in " ".join(err.split())
    now = json.loads(Path("run/run.json").read_text())
    assert (now["options"], now["config"]) == (began["options"], began["config"])
    assert "--seed would change what the run is" in command("eval", "--resume", "run", "--seed", "4")[2]


GUARDED = """\
serve.host = "0.0.0.0"
serve.control-host = "0.0.0.0"
serve.control-port = 1
serve.allowed-host = ["evil"]
serve.public-url = "http://evil"
serve.fastmcp = "x:y"
serve.rewards = "x"
serve.tasks = "x"
serve.secret-file = "x"
serve.signing-key = "x"
serve.control-socket = "x"
serve.ray = true
serve.ray-address = "x"
serve.stdio = true
eval.policy = "openai:m@http://evil"
eval.server = ["http://evil"]
eval.agent = "command:sh"
eval.agent-python = "x"
eval.agent-env = ["HOME"]
eval.engine = "ray"
eval.out = "/"
eval.overwrite = true
eval.prices = "x"
eval.resume = "x"
play.against = "script:x"
verify.trust = true
verify.env = ["x:Y"]
replay.trust = true
scan.play = true
connect.write = true
wrap.env = ["HOME"]
env.add.anyway = true
env.push.to = "hf:x/y"
doctor.json = "x"
train.set = ["model.path=x"]
view.environment = ["x:Y"]
show.environment = ["x:Y"]
bundle.force = true
environments.wiki-search.corpus = "zim:/x"
environments.wiki-search.judge = "openai:m@http://evil"
environments.python-sandbox.backend = "docker"
"""


def test_a_found_file_opens_nothing_and_one_that_is_named_may(command: Callable) -> None:
    write(GUARDED + "environments.wiki-search.pages = 20000\nserve.port = 9000\neval.tool-mode = 'native'\n")
    code, _, err = command("config", "check")
    assert code == 1
    lines = GUARDED.splitlines()
    wanted = [f"mcpgym.toml:{place}: {line.partition(' =')[0]}" for place, line in enumerate(lines, start=1)]
    assert [line.removeprefix("fault: ").split(": a file that was")[0] for line in err.splitlines()] == wanted
    assert all("may not set this" in line and "mcpgym --config-file mcpgym.toml" in line for line in err.splitlines())
    assert command("config", "check", "mcpgym.toml")[:2] == (0, "no fault: mcpgym.toml\n")


def test_what_an_environment_reaches_is_the_fault_of_the_file_that_says_it(command: Callable) -> None:
    write("[environments.wiki-search]\njudge = 'openai:m@http://127.0.0.1:9'\n", "home/mcpgym/mcpgym.toml")
    write("[environments.wiki-search]\npages = 20000\n")
    assert command("config", "check")[0] == 0
    write("[environments.wiki-search]\njudge = 'openai:m@http://127.0.0.1:8'\n")
    assert "mcpgym.toml:2: environments.wiki-search.judge: a file that" in command("check", "wiki-search")[2]


def test_a_server_is_not_opened_by_a_file_that_lies_there(command: Callable) -> None:
    write("[serve]\nhost = '0.0.0.0'\nport = 0\n")
    code, out, err = command("serve", "tic-tac-toe")
    assert (code, out) == (2, "")
    assert err.startswith("error: mcpgym.toml:2: serve.host: a file that was merely found")


def test_new_options_are_not_free_until_somebody_says_so() -> None:
    from mcpgym_clients.configuring import trust
    from mcpgym_clients.configuring.names import key_of, kind_of, options_of
    from mcpgym_clients.configuring.whole import all_commands, whole_command_line

    free = {
        key_of(option)
        for _, command, _ in all_commands(*whole_command_line())
        for option in options_of(command)
        if trust.is_free(option) and kind_of(option) in ("text", "path", "flag")
    }
    assert free == trust._THESE, "each of these words reaches for nothing; one that no option has any more can go"


FAULTS = """\
port = 5
[serv]
port = 1

[serve]
prot = 9000
max_episodes = 1
port = 70000
workers = "two"
stdio = 1
allowed-host = "one"
"drain-seconds" = true

[eval]
tasks = 0
lane = "controll"
config = ["max_turns=1"]
policy = ""

[env]
ad = {json = true}

[environments]
tic-tac-to = {x = 1}

[environments.tic-tac-toe]
max_turn = 1
best_move = [
  "any",
]
train_tasks = "many"
"""
SAID = [
    (1, "port", "no such command"),
    (2, "serv", "did you mean serve?"),
    (6, "serve.prot", "did you mean port?"),
    (7, "serve.max_episodes", "did you mean max-episodes?"),
    (8, "serve.port", "65535"),
    (9, "serve.workers", "write a number"),
    (10, "serve.stdio", "true or false"),
    (11, "serve.allowed-host", "write a list"),
    (12, "serve.drain-seconds", "write a number"),
    (15, "eval.tasks", "greater than or equal to 1"),
    (16, "eval.lane", "'control', 'mcp'"),
    (17, "eval.config", "[environments.NAME]"),
    (18, "eval.policy", "leave the key out"),
    (21, "env.ad", "did you mean add?"),
    (24, "environments.tic-tac-to", "did you mean tic-tac-toe?"),
    (28, "environments.tic-tac-toe.best_move", "write a text, a number"),
]


def test_check_says_every_fault_with_its_line_and_what_is_right(command: Callable) -> None:
    write(FAULTS, "it.toml")
    code, out, err = command("config", "check", "it.toml")
    lines = err.splitlines()
    assert code == 1
    assert [line.split(": ")[1:3] for line in lines] == [[f"it.toml:{number}", key] for number, key, _ in SAID]
    assert all(right in line for line, (_, _, right) in zip(lines, SAID, strict=True))
    assert out == f"{len(SAID)} faults: it.toml\n"
    write(FAULTS.replace('best_move = [\n  "any",\n]\n', ""), "it.toml")
    err = command("config", "check", "it.toml")[2]
    assert "it.toml:27: environments.tic-tac-toe.max_turn: " in err
    assert "did you mean 'max_turns'" in err
    assert "it.toml:28: environments.tic-tac-toe.train_tasks: " in err


@pytest.mark.parametrize(
    ("content", "says"),
    [
        (b"[serve\nport = 1\n", "it.toml:1: no TOML: expected ']'"),
        (b"[serve]\nport = 1\nport = 2\n", "it.toml:3: no TOML: cannot overwrite a value"),
        (b"[serve]\nname = '''x\n", "it.toml:2: no TOML: expected"),
        (b"[serve]\n# \xff\n", "it.toml:2: is not UTF-8"),
        (b"a = " + b"[" * 5000, "no TOML: nested too deep"),
        (b"#" * (LARGEST + 1), "at most 64 KiB"),
        (b"[eval]\ntasks = " + b"1" * 5000, "no TOML: an integer has at most 64 bits"),
        (b"[eval]\ntasks = 0x" + b"f" * 5000, "it.toml:2: eval.tasks: an integer has at most 64 bits"),
        (b"[eval]\nsplit = 'a" + b"a" * 5000 + b"'", "it.toml:2: eval.split: a text has at most 4096 characters"),
        (b"a = '''\n'''\n" + b"a." * 30000 + b"a = 1", "it.toml:3: tables and lists are at most 8 deep"),
        (b"a = " + b"[" * 20 + b"]" * 20, "it.toml:1: a: tables and lists are at most 8 deep"),
        (None, "cannot be read: No such file"),
    ],
)
def test_a_file_that_cannot_be_read_stops_commands_but_not_their_help(
    command: Callable, content: bytes | None, says: str
) -> None:
    if content is not None:
        Path("it.toml").write_bytes(content)
    code, _, err = command("config", "check", "it.toml")
    assert code == 1
    assert says in err
    code, _, err = command("--config-file", "it.toml", "list")
    assert code == 2
    assert says in err
    assert command("--config-file", "it.toml", "serve", "--help")[0] == 0


@pytest.mark.parametrize(
    ("text", "place"),
    [
        ("[eval]\n" + "".join(f"a{number} = 1\n" for number in range(2000)), "2: eval.a0"),
        ('[eval]\nx = [\n"' + '\\\\",\n"' * 9000 + '"]\ny = 1\n', "2: eval.x"),
        ('[eval]\nx = """\n' + 'a\\"""\n' * 600 + '"""\ny = 1\n', "2: eval.x"),
        ('x = """\n' + 'a\\"""\n' * 9000, "9001: no TOML"),
        ('x = "' + '\\"' * 30000 + "\n", "1: no TOML"),
    ],
    ids=["keys", "list", "text", "open text", "open line"],
)
def test_a_strangers_file_is_refused_soon_however_it_is_written(command: Callable, text: str, place: str) -> None:
    """Some of these took every command minutes: each line was looked for by parsing all before it again and again."""
    write(text)
    code, _, err = command(*EVAL, "--out", "r")
    assert code == 2
    assert err.startswith(f"error: mcpgym.toml:{place}: ")
    assert len(err) < 20_000


def test_a_found_file_makes_no_check_look_at_less_and_no_bill_larger(command: Callable) -> None:
    guarded = "doctor.only = ['x']\ndoctor.quick = true\ndoctor.read-only = true\nscan.only = ['x']\n"
    guarded += "replay.score-tolerance = 1.0\neval.success = 0.0\neval.max-cost = 1e9\neval.max-total-tokens = 9\n"
    write(guarded)
    assert command("config", "check")[2].count("may not set this") == guarded.count("\n")
    assert "replay.score-tolerance: a file that was" in command("replay", "runs")[2]


def test_a_home_that_cannot_be_looked_into_has_no_file(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_CONFIG_HOME", "/" + "x" * 300)
    assert chosen_files(None) == []


SECRETS = {
    "[serve]\nsecret = 'abcdefghijklmnop'": "abcdefghijklmnop",
    "[eval]\napi-key = 'abcdefgh'": "abcdefgh",
    "[eval]\npolicy = 'openai:m@http://me:hunter2@h/v1'": "hunter2",
    "[eval]\nserver = ['http://a', 'http://me:hunter2@h']": "hunter2",
    "[eval]\npolicy = 'openai:sk-proj-aB3dE5fG7hI9jK1lM3nO5pQ7'": "aB3dE5fG7hI9jK1lM3nO5pQ7",
    "[doctor]\nheader = ['Authorization: Basic abcdefgh']": "abcdefgh",
    "[scan]\ncanary = ['a-secret-of-mine']": "a-secret-of-mine",
    "[environments.tic-tac-toe]\napi_key = 'abcdefgh'": "abcdefgh",
    "OPENAI_API_KEY = 'abcdefgh'": "abcdefgh",
    "[unknown.deeper]\nmy_password = 'abcdefgh'": "abcdefgh",
}


@pytest.mark.parametrize("text", SECRETS, ids=range(len(SECRETS)))
def test_a_secret_in_a_file_is_refused_and_never_repeated(text: str) -> None:
    with pytest.raises(
        ConfigurationProblem, match="a secret does not stand here: put it into the environment"
    ) as caught:
        read(write(text, "it.toml"), named=True)
    assert SECRETS[text] not in str(caught.value)


def test_no_command_runs_under_a_file_with_a_secret(command: Callable) -> None:
    write("[eval]\npolicy = 'openai:m@http://me:hunter2@h/v1'", "it.toml")
    for words, expected in ((("config", "check"), 1), (("list",), 2), (("config", "show"), 2)):
        code, out, err = command("--config-file", "it.toml", *words)
        assert code == expected
        assert "it.toml:2: eval.policy: a secret does not stand here" in err
        assert "hunter2" not in out + err


@pytest.mark.parametrize(
    ("words", "variable"),
    [
        (("eval", "tic-tac-toe", "--policy", "openai:m@http://me:hunter2@127.0.0.1:9/v1"), "MCPGYM_EVAL_POLICY"),
        (("play", "tic-tac-toe", "--server", "http://me:hunter2@127.0.0.1:9"), "MCPGYM_PLAY_SERVER"),
        (("doctor", "http://127.0.0.1:9/mcp", "--header", "X-Api-Key: hunter2"), "MCPGYM_DOCTOR_HEADER"),
        (("stress", "http://127.0.0.1:9/mcp", "--header=Cookie: id=hunter2"), "MCPGYM_STRESS_HEADER"),
        (("list", "--json", "x"), None),
        (("check", "tic-tac-toe", "-c", "api_key=hunter2"), "MCPGYM_CHECK_CONFIG"),
    ],
)
def test_a_secret_in_a_flag_is_refused_with_the_remedy(
    command: Callable, words: tuple[str, ...], variable: str | None
) -> None:
    code, out, err = command(*words)
    assert code == 2
    assert "hunter2" not in out + err
    assert variable is None or f"put the value into the environment: {variable}." in err


@pytest.mark.parametrize(
    ("key", "text"),
    [
        ("search", "password: x"), ("call", 'set_password={"a": 1}'), ("policy", "local:runs/sk-learn-something"),
        ("header", "Accept: x"), ("out", "tasks/sk-1"), ("server", "http://host:8000"), ("server", "unix:/a@b:c"),
        ("policy", "openai:model@http://127.0.0.1:8000/v1"), ("config", "max_turns=5"), ("env", "OPENAI_API_KEY"),
    ],
)  # fmt: skip
def test_what_is_no_secret_is_let_be(key: str, text: str) -> None:
    assert not secrecy.holds_secret(key, [text])
    assert key == "header" or secrecy.masked(key, text) == text


def test_show_says_where_each_value_is_from_and_hides_secrets(
    command: Callable, monkeypatch: pytest.MonkeyPatch
) -> None:
    write("[eval]\ntasks = 5\n[environments.tic-tac-toe]\nmax_turns = 7\n", "it.toml")
    monkeypatch.setenv("MCPGYM_EVAL_POLICY", "openai:m@http://me:hunter2@h/v1")
    monkeypatch.setenv("MCPGYM_DOCTOR_HEADER", "A: hunter2\nB: hunter2")
    monkeypatch.setenv("MCPGYM_CONTROL_SECRET", "hunter2-hunter2-hunter2")
    monkeypatch.setenv("OPENAI_API_KEY", "hunter2")
    found = shown(command, file="it.toml")
    assert [(row["command"], row["option"], row["value"], row["source"], row["where"]) for row in found["options"]] == [
        ("eval", "policy", "openai:m@http://***@h/v1", "environment", "MCPGYM_EVAL_POLICY"),
        ("eval", "tasks", 5, "file", "it.toml:2"),
        ("doctor", "header", ["A: ***", "B: ***"], "environment", "MCPGYM_DOCTOR_HEADER"),
    ]
    assert found["environments"] == [
        {"environment": "tic-tac-toe", "field": "max_turns", "value": "7", "where": "it.toml:4"}
    ]
    assert {row["variable"]: row["value"] for row in found["secrets"]} == {
        "MCPGYM_CONTROL_SECRET": "***", "OPENAI_API_KEY": "***",
    }  # fmt: skip
    for words in ((), ("eval",), ("doctor",)):
        out = command("--config-file", "it.toml", "config", "show", *words)[1]
        assert "hunter2" not in out
        assert "MCPGYM_CONTROL_SECRET" in out
    assert "there is: " in command("config", "show", "xyzzy")[2]


def test_an_error_says_where_the_value_was_written(command: Callable, monkeypatch: pytest.MonkeyPatch) -> None:
    write("[serve]\nport = 70000\n[play]\nseat = 'first'\n")
    assert "'--port': Input should be less than or equal to 65535 (mcpgym.toml:2)" in command("serve")[2]
    assert "(--seat is from mcpgym.toml:4)" in command("play", "tic-tac-toe")[2]
    monkeypatch.setenv("MCPGYM_SERVE_PORT", "x")
    assert "(MCPGYM_SERVE_PORT)" in command("serve")[2]
    assert "--config-file goes before the command" in command("serve", "--config-file", "x")[2]


def test_a_variable_of_nearly_an_options_name_is_refused_and_others_variables_are_not(
    command: Callable, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in (
        "MCPGYM_LIST_SERVICE_HOST",
        "MCPGYM_LIST_PORT_8000_TCP_ADDR",
        "MCPGYM_LISTS_JSON",
        "MCPGYM_NEW_MODEL_OUT",
    ):
        monkeypatch.setenv(name, "tcp://10.0.0.1:8000")
    assert command("list", "tic-tac-toe")[0] == 0
    monkeypatch.setenv("MCPGYM_LIST_JASON", "1")
    code, _, err = command("list", "tic-tac-toe")
    assert (code, "did you mean MCPGYM_LIST_JSON?" in err) == (2, True)
    assert "did you mean MCPGYM_LIST_JSON?" in command("config", "check")[2]
    monkeypatch.delenv("MCPGYM_LIST_JASON")
    monkeypatch.setenv("MCPGYM_EVAL_TASKS", "none")
    code, _, err = command("config", "check")
    assert (code, "fault: MCPGYM_EVAL_TASKS: " in err) == (1, True)


def test_a_process_that_we_start_is_configured_by_us_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MCPGYM_SERVE_HOST", "0.0.0.0")
    monkeypatch.setenv("MCPGYM_SERVER", "kept")
    found = unconfigured([("serve",)])
    assert "MCPGYM_SERVE_HOST" not in found
    assert (found["MCPGYM_SERVER"], found["MCPGYM_CONFIG"]) == ("kept", os.devnull)


def test_a_flag_that_means_something_else_makes_the_file_give_way(command: Callable) -> None:
    write("[serve]\nport = 9000\nworkers = 2\nseed = 3\n")
    code, _, err = command("serve", "tic-tac-toe", "--stdio", "--task", "no-such-task")
    assert (code, "belongs to HTTP" in err, "no-such-task" in err) == (code, False, True)


def test_what_only_looks_like_a_line_of_toml_is_none() -> None:
    text = '[serve]\nname = """\nport = 1\n[eval]\ntasks = 2\n"""\nport = 3\n[eval]\ntasks = 4\n[a]\nb.c = 5\n'
    places = {("serve", "name"): 2, ("serve", "port"): 7, ("eval", "tasks"): 9, ("a", "b", "c"): 11, ("a", "x"): 10}
    assert {keys: line_of(text, keys) for keys in places} == places
    assert line_of(text, ["nowhere"]) is None


KEYS = st.text(st.characters(exclude_categories=("Cs",), exclude_characters="\0"), min_size=1, max_size=5)
VALUES = st.integers() | st.booleans() | st.text(max_size=20) | st.lists(st.integers(), max_size=3)


@settings(max_examples=60, deadline=None)
@given(st.dictionaries(KEYS, st.dictionaries(KEYS, VALUES, max_size=3), max_size=3), st.text("\n# \t", max_size=6))
def test_lines_are_where_an_editor_shows_them(document: dict[str, dict[str, Any]], before: str) -> None:
    try:
        text = tomlkit.dumps(document)
    except ValueError:
        return
    text = f"#{before.replace('#', '')}\n{text}" if before else text
    if tomlkit.parse(text).unwrap() != document:
        return
    lines = text.split("\n")
    for table, fields in document.items():
        for key, value in fields.items():
            line = line_of(text, [table, key])
            assert line is not None
            written = tomlkit.parse(f"{lines[line - 1]}\n" if not isinstance(value, str) else lines[line - 1])
            assert written.unwrap() == {key: value}
