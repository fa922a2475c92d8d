"""``run.json``: what a run is. Written when it begins, so that it can go on when it was killed; it holds no secret."""

from __future__ import annotations

import hashlib
import json
import shlex
import time
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from pydantic import TypeAdapter, ValidationError

from mcpgym import __version__
from mcpgym_clients.arena import Arena
from mcpgym_clients.console import warn
from mcpgym_clients.eval_options import EvalOptions
from mcpgym_clients.failures import UsageProblem
from mcpgym_clients.files import RUN, SUMMARY
from mcpgym_rl.files import write_atomically
from mcpgym_rl.policies.endpoint import HIDDEN, without_password
from mcpgym_rl.policy import Policy
from mcpgym_rl.traces import Trace

SCHEMA = "mcpgym.run/1"

OPERATIONAL = frozenset(
    {"concurrency", "server", "secret_file", "lane", "timeout", "retries", "rate_limit"}
    | {"max_cost", "max_total_tokens", "prices", "success", "exact", "agent_python", "agent_env"}
    | {"engine", "shards", "ray_address"}
)
"""Options that say how a run is carried out, not what it is: they may be given anew when it goes on."""
_NOT_KEPT = frozenset({"out", "overwrite", "fewer", "resume"})


@dataclass(frozen=True, slots=True)
class RunFile:
    """What a run is: its options, and what they meant when it began.

    ``environment`` is the environment's own name and ``policy`` the policy's; ``policy_hash`` is of a script or of
    weights, None where there are none. ``config`` is the whole configuration of its episodes, None where only a server
    knows it. ``started`` and ``resumed`` are times, UTC. ``agent_version`` is of the agent product that plays, where
    one does and says it.
    """

    options: EvalOptions
    environment: str
    environment_version: str
    schema_hash: str
    policy_hash: str | None
    mcpgym: str
    started: str
    resumed: Sequence[str] = ()
    policy: str = ""
    config: Mapping[str, Any] | None = None
    agent_version: str | None = None

    def write(self, folder: Path) -> None:
        """Write it into the run's folder."""
        made: dict[str, Any] = {"schema": SCHEMA, **_ADAPTER.dump_python(self, mode="json")}
        options = made["options"]
        for name in _NOT_KEPT:
            del options[name]
        for name in ("policy", "server"):
            options[name] = None if options[name] is None else without_password(options[name])
        for name in ("secret_file", "prices", "agent_python"):
            options[name] = None if options[name] is None else str(Path(options[name]).absolute())
        write_atomically(folder / RUN, made)


_ADAPTER = TypeAdapter(RunFile)


async def describe(options: EvalOptions, arena: Arena, policy: Policy) -> RunFile:
    """What a run with these options is, if it begins now."""
    served = next(item for item in await arena.control.environments() if item.name == arena.name)
    own = None if options.server is not None or arena.environment is None else arena.environment.config
    return RunFile(
        options,
        arena.name,
        served.version,
        served.schema_hash,
        _hash(options.policy, policy),
        __version__,
        now(),
        policy=policy.name,
        config=None if own is None else own.model_dump(mode="json"),
        agent_version=getattr(policy, "version", None) if options.agent is not None else None,
    )


def read_run_file(folder: Path) -> RunFile:
    """The ``run.json`` in ``folder``.

    Raises:
        UsageProblem: there is none, or it is damaged or of another version.
    """
    path = folder / RUN
    try:
        read = json.loads(path.read_text("utf-8"))
        if not isinstance(read, dict) or read.get("schema") != SCHEMA:
            raise ValueError(f"its schema is not {SCHEMA!r}")
        return _ADAPTER.validate_python(read)
    except FileNotFoundError:
        what = "there is no such folder" if not folder.is_dir() else f"there is no {RUN} in it, so no run to go on with"
        raise UsageProblem(f"--resume {folder}: {what}") from None
    except ValidationError as error:
        first = error.errors()[0]
        where = ".".join(map(str, first["loc"]))
        raise UsageProblem(f"--resume {folder}: {path} is damaged: {where}: {first['msg']}") from None
    except (OSError, ValueError, RecursionError) as error:
        raise UsageProblem(f"--resume {folder}: {path} cannot be read: {error}") from None


def going_on(folder: Path, typed: EvalOptions, given: Collection[str], configured: Collection[str] = ()) -> EvalOptions:
    """The options of the run in ``folder``, with those of ``typed`` that were ``given`` and may be given anew.

    Those that were ``configured`` by a file or a variable are left aside, which is said: a run goes on as it began.
    Only where it had a password, which is not kept, is that taken from there.

    Raises:
        UsageProblem: there is no run, or an option would change what it is; the message says which.
    """
    there = read_run_file(folder).options
    given = {
        *given,
        *(name for name in configured if _gives_password(getattr(typed, name, None), getattr(there, name))),
    }
    wrong = []
    changed: dict[str, Any] = {"resume": folder}
    for name in sorted(set(given) - {"resume"}):
        wanted, has = getattr(typed, name), getattr(there, name)
        if name in OPERATIONAL:
            changed[name] = wanted
        elif name in ("out", "overwrite"):
            wrong.append(f"{_option(name)} has no meaning here")
        elif name == "policy" and without_password(wanted) == without_password(has):
            changed[name] = wanted  # with its password
        elif (list(wanted) if name == "config" else wanted) != (list(has) if name == "config" else has):
            shown = (
                shlex.join(has)
                if name == "config"
                else without_password(str("" if has is None or has is False else has))
            )
            wrong.append(f"{_option(name)} would change what the run is (it has {shown or 'none'})")
    if wrong:
        raise UsageProblem(f"--resume {folder}: {'; '.join(wrong)}: leave it out, or start another run")
    options = replace(there, **changed)
    aside = [name for name in sorted({*configured} - {*given}) if name not in _NOT_KEPT | {"config"}]
    if aside := [name for name in aside if _differs(getattr(typed, name), getattr(options, name))]:
        names = ", ".join(map(_option, aside))
        warn(f"--resume goes on with what the run began with; left aside, as it is not of this command line: {names}")
    for name in ("policy", "server"):
        if HIDDEN in (getattr(options, name) or ""):
            raise UsageProblem(
                f"--resume {folder}: its {_option(name)} had a password, which is not kept: put it into "
                f"MCPGYM_EVAL_{name.upper()} again"
            )
    return options


def _gives_password(configured: object, there: object) -> bool:
    """Whether a value is what the run had, with the password that was not kept."""
    return isinstance(there, str) and HIDDEN in there and without_password(str(configured)) == there


def _differs(configured: object, there: object) -> bool:
    return list(configured) != list(there) if isinstance(configured, list) else configured != there  # type: ignore[call-overload]


def check_same(folder: Path, there: RunFile, here: RunFile) -> None:
    """See that a run may go on with what is here now.

    Raises:
        UsageProblem: its scores and the new ones could not be averaged; the message says why.
    """
    named = {
        "environment": "the environment is {here} here, and was {there} when the run began",
        "environment_version": "the environment has version {here} now, and had {there} when the run began",
        "schema_hash": "the environment's tools are not those the run began with (schema hash {here}, not {there})",
        "agent_version": "the agent has version {here} now, and had {there} when the run began",
        "policy_hash": "the policy's file is not the one the run began with (hash {here}, not {there})",
    }
    for name, text in named.items():
        now_, then = getattr(here, name), getattr(there, name)
        if now_ != then:
            said = text.format(here=str(now_)[:16], there=str(then)[:16])
            raise UsageProblem(f"--resume {folder}: {said}; start another run")
    if there.mcpgym != here.mcpgym:
        warn(f"the run was begun by mcpgym {there.mcpgym}; this is {here.mcpgym}")


def foreign(trace: Trace, here: RunFile, first: Trace | None) -> str | None:
    """What in a trace is not of the run that ``here`` describes; None where it is one of its traces.

    Args:
        trace: of an episode that was opened.
        here: what the run is now.
        first: another of its traces, for what ``here`` does not know.
    """
    wanted: dict[str, Any] = {
        "environment": here.environment,
        "environment_version": here.environment_version,
        "schema_hash": here.schema_hash,
        "split": here.options.split,
        "policy": here.policy,
        "config": here.config if here.config is not None or first is None else first.config,
    }
    for name, value in wanted.items():
        has: Any = getattr(trace, name)
        if value is None or has == value:
            continue
        if name == "config":
            other = sorted(key for key in {*has, *value} if has.get(key) != value.get(key))
            return f"with another configuration ({', '.join(other)})"
        return f"whose {name.replace('_', ' ')} is {str(has)[:40]} and not {str(value)[:40]}"
    return None


def is_unfinished(folder: Path) -> bool:
    """Whether there is a run in ``folder`` that has not come to its end."""
    if not (folder / RUN).is_file():
        return False
    try:
        return json.loads((folder / SUMMARY).read_text("utf-8"))["complete"] is not True
    except (OSError, ValueError, KeyError, TypeError):
        return True


def now() -> str:
    """The time, as files have it."""
    return time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime())


def _hash(spec: str, policy: Policy) -> str | None:
    if spec.startswith("script:"):
        return hashlib.sha256(Path(spec.partition(":")[2]).read_bytes()).hexdigest()
    made = getattr(policy, "hash", None) or getattr(getattr(policy, "directory", None), "hash", None)
    return made if isinstance(made, str) else None


def _option(name: str) -> str:
    return {"environment": "ENV"}.get(name, f"--{name.replace('_', '-')}")
