"""Where packages are pushed to: the Hugging Face Hub, and Prime Intellect's Environments Hub."""

from __future__ import annotations

import hashlib
import importlib
import os
import re
import shlex
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from mcpgym_clients.failures import CommandFailed, UsageProblem
from mcpgym_clients.sharing.hub_page import hub_page
from mcpgym_clients.sharing.packages import built, read_package

REPOSITORY_TYPE = "dataset"
"""The hub has no type for environments; this one holds files of any kind, and shows the page."""
TOKEN = "HF_TOKEN"
_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,95}/[A-Za-z0-9][A-Za-z0-9._-]{0,95}")


@dataclass(frozen=True, slots=True)
class Upload:
    """One file of an upload: its place in the repository, and its bytes."""

    place: str
    content: bytes

    @property
    def sha256(self) -> str:
        """Of its bytes."""
        return hashlib.sha256(self.content).hexdigest()


def uploads(folder: Path) -> list[Upload]:
    """What goes to the Hugging Face Hub: these files and no other.

    Raises:
        UsageProblem: something is missing; the text says how it is made.
    """
    package = read_package(folder)
    if not package.environments:
        raise UsageProblem(f"{folder / 'pyproject.toml'} registers no environment: mcpgym new writes one that does")
    files = [Upload(f"dist/{path.name}", path.read_bytes()) for path in built(package)]
    return [Upload("README.md", hub_page(package).encode()), *files]


def repository(named: str) -> str:
    """``OWNER/NAME``, if that is what it is.

    Raises:
        UsageProblem: it is not.
    """
    if not _NAME.fullmatch(named) or ".." in named or "--" in named:
        raise UsageProblem(f"{named!r} is no repository: write hf:OWNER/NAME")
    return named


def push_to_hugging_face(named: str, files: Sequence[Upload], message: str, private: bool) -> str:
    """Make the repository where it is not there, and put the files there in one commit; where that can be seen.

    Raises:
        UsageProblem: there is no token in the environment, or no ``huggingface_hub``.
        CommandFailed: the hub says no.
    """
    token = os.environ.get(TOKEN, "").strip()
    if not token:
        raise UsageProblem(f"set {TOKEN} to a token that may write to {named}; --dry-run needs none")
    try:
        hub: Any = importlib.import_module("huggingface_hub")
    except ImportError:
        raise UsageProblem("pushing needs huggingface_hub: pip install 'mcpgym[hub]'") from None
    api = hub.HfApi(token=token, endpoint=os.environ.get("HF_ENDPOINT") or None)
    try:
        api.create_repo(named, repo_type=REPOSITORY_TYPE, private=private or None, exist_ok=True)
        operations = [hub.CommitOperationAdd(path_in_repo=file.place, path_or_fileobj=file.content) for file in files]
        made = api.create_commit(named, operations, commit_message=message, repo_type=REPOSITORY_TYPE)
    except Exception as error:
        said = " ".join(str(error).replace(token, "…").split())
        raise CommandFailed(f"the hub did not take it: {type(error).__name__}: {said[:500]}") from None
    return str(made.commit_url)


def prime_command(folder: Path, named: str) -> str:
    """The command that pushes an exported package to Prime's Environments Hub, which builds and uploads it itself.

    Raises:
        UsageProblem: the folder lacks what ``prime env push`` (0.18) asks of it; the text says what.
    """
    package = read_package(folder)
    owner, slash, name = named.partition("/")
    if not re.fullmatch(r"[a-z0-9-]{3,30}", owner) or (slash and not re.fullmatch(r"[a-z0-9][a-z0-9_.-]*", name)):
        raise UsageProblem(f"{named!r} is no place on that hub: write prime:OWNER or prime:OWNER/NAME, in lower case")
    modules = [*folder.glob("*.py"), *folder.glob("*/__init__.py")]
    if not modules:
        raise UsageProblem(
            f"{folder} has no Python module at its top, nor a package: mcpgym export verifiers writes one"
        )
    needs = [text for text in package.project.get("dependencies", ()) if re.match(r"verifiers\b", str(text))]
    if not needs:
        raise UsageProblem(
            f"{folder} does not depend on verifiers, so that hub could not run it: "
            "push what mcpgym export verifiers writes"
        )
    if not (folder / "README.md").is_file():
        raise UsageProblem(f"{folder} has no README.md, which is its page there")
    words = ["prime", "env", "push", "--path", str(folder), "--owner", owner, *(["--name", name] if name else [])]
    return shlex.join(words)
