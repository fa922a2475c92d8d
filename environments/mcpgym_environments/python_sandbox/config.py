"""What may be configured about the Python sandbox."""

from __future__ import annotations

from collections.abc import Sequence
from importlib.util import find_spec
from typing import Literal, Self

from pydantic import Field, field_validator, model_validator

from mcpgym import Config
from mcpgym_environments.python_sandbox.sessions.backend import Level, SandboxLimits

FAMILIES = ("compute", "function", "data", "debug")
LOCAL = ("auto", "namespaces", "landlock", "bubblewrap")
"""Back-ends that keep code in on this machine with what is installed: choosing one asks nothing of anybody."""
PACKAGES = ("numpy", "pandas")
"""What may be there besides the standard library, in the order in which it is said."""


class PythonSandboxConfig(Config):
    """Where code runs, what it may use, the tasks, and what an episode may cost.

    The default is the strongest boundary that this machine has without installing anything, and tasks of all kinds.
    """

    backend: str = "auto"
    """What keeps the code in: auto (namespaces, else landlock, else nothing is opened), or one by its name, such as
    docker, wasm or e2b. unsafe-local has resource limits and no boundary: only for code that you trust."""
    min_isolation: Level = "landlock"
    """The weakest boundary to make do with: none, landlock, wasm, namespaces, gvisor or vm. What is weaker is refused;
    unsafe-local is none."""
    image: str = ""
    """The image or template of a back-end that has such; nothing is its own default."""
    packages: str = "auto"
    """What the code can import besides the standard library: auto (what of numpy and pandas is installed here; nothing
    in an image or elsewhere), none, numpy, or numpy,pandas."""
    seconds: float = Field(default=10.0, ge=0.1, le=300, allow_inf_nan=False)
    """Seconds that one run may take, by the clock and in processor time."""
    memory_mb: int = Field(default=1536, ge=128, le=65_536)
    """Megabytes of memory that a session may hold; one process of it may address two thirds of that."""
    workspace_mb: int = Field(default=64, ge=1, le=4_096)
    """Megabytes that the files of a session may take together."""
    processes: int = Field(default=32, ge=1, le=512)
    """Processes and threads that a session may have."""
    output_characters: int = Field(default=4_000, ge=200, le=100_000)
    """How many characters of what a run printed, or of a file, are shown at once; of long output the middle is cut."""
    tasks: Literal["made", "open"] = "made"
    """made: problems with an answer or hidden tests; open: one task, to do what somebody asks, without limits on calls
    and without a score."""
    families: str = "all"
    """Which families of problems are made: all, or some of compute, function, data and debug with commas between."""
    generators: str = "all"
    """Which generators make problems: all of these families, or some by their names with commas between."""
    min_level: int = Field(default=1, ge=1, le=5)
    """The easiest problems, 1 to 5."""
    max_level: int = Field(default=5, ge=1, le=5)
    """The hardest problems, 1 to 5."""
    thoughts: bool = False
    """Whether the prompt asks to think inside <think> and </think> before each call, and the format is rewarded."""
    max_calls: int = Field(default=30, ge=1, le=1_000)
    """How many runs, writes, reads and listings an episode has; after them only a solution can be submitted."""
    efficiency_weight: float = Field(default=0.0, ge=0, le=1, allow_inf_nan=False)
    """What few calls pay besides a right solution; 0 only reports it."""
    no_errors_weight: float = Field(default=0.0, ge=0, le=1, allow_inf_nan=False)
    """What a right solution without a failed run or call pays besides; 0 only reports it."""
    train_tasks: int = Field(default=10_000, ge=1, le=1_000_000_000)
    """How many tasks the train split has."""
    test_tasks: int = Field(default=1_000, ge=1, le=1_000_000_000)
    """How many tasks the test split has."""

    @field_validator("backend")
    @classmethod
    def _known_backend(cls, value: str) -> str:
        name = value.strip().lower().replace("_", "-")
        if name not in LOCAL:
            from mcpgym_environments.python_sandbox.sessions.choosing import backend_names

            if name not in (known := ("auto", *backend_names())):
                raise ValueError(f"no back-end {value!r}; there is: {', '.join(known)}")
        return name

    @field_validator("packages")
    @classmethod
    def _known_packages(cls, value: str) -> str:
        wanted = _words(value)
        if wanted in ([], ["auto"], ["none"]):
            return wanted[0] if wanted else "none"
        if unknown := [word for word in wanted if word not in PACKAGES]:
            raise ValueError(f"no package {unknown[0]!r} can be preloaded; write auto, none, numpy, or numpy,pandas")
        if "pandas" in wanted:
            wanted = list(PACKAGES)  # it needs numpy
        return ",".join(name for name in PACKAGES if name in wanted)

    @field_validator("families")
    @classmethod
    def _known_families(cls, value: str) -> str:
        """The families in their own order, each once."""
        wanted = _words(value)
        if unknown := [word for word in wanted if word not in (*FAMILIES, "all")]:
            raise ValueError(f"no family of problems {unknown[0]!r}; there is: all, {', '.join(FAMILIES)}")
        if not wanted or "all" in wanted:
            return "all"
        return ",".join(family for family in FAMILIES if family in wanted)

    @field_validator("generators")
    @classmethod
    def _listed_generators(cls, value: str) -> str:
        wanted = list(dict.fromkeys(_words(value.replace("_", "-"))))
        return "all" if not wanted or "all" in wanted else ",".join(wanted)

    @model_validator(mode="after")
    def _consistent(self) -> Self:
        if self.min_level > self.max_level:
            raise ValueError(f"min_level={self.min_level} must not be above max_level={self.max_level}")
        if self.image and self.backend in LOCAL:
            raise ValueError(
                f"backend={self.backend} runs on this machine and takes no image; name one that has images"
            )
        return self

    def reaches(self) -> Sequence[str]:
        """The back-end where it is another machine's, starts a program of yours or keeps nothing in; and its image."""
        outside = {"backend": self.backend not in LOCAL, "image": bool(self.image)}
        return [f"{name}={getattr(self, name)}" for name, there in outside.items() if there]

    @property
    def family_names(self) -> tuple[str, ...]:
        """The families that problems are made of."""
        return FAMILIES if self.families == "all" else tuple(self.families.split(","))

    @property
    def generator_names(self) -> tuple[str, ...] | None:
        """The generators that are asked for by name; None for all of the families."""
        return None if self.generators == "all" else tuple(self.generators.split(","))

    @property
    def package_names(self) -> tuple[str, ...]:
        """The distributions that are there besides the standard library. Nothing of them is imported."""
        if self.packages == "auto":  # elsewhere it depends on the image, which says what it has in its facts
            here = self.backend in (*LOCAL, "unsafe-local")
            return tuple(name for name in PACKAGES if here and find_spec(name) is not None)
        return () if self.packages == "none" else tuple(self.packages.split(","))

    @property
    def limits(self) -> SandboxLimits:
        """What a session may use."""
        memory, files = self.memory_mb * 2**20, self.workspace_mb * 2**20
        return SandboxLimits(
            seconds=self.seconds,
            cpu_seconds=self.seconds,
            address_space=memory * 2 // 3,
            memory=memory,
            processes=self.processes,
            file_bytes=files,
            workspace_bytes=files,
        )


def _words(value: str) -> list[str]:
    return [word for word in value.lower().replace(",", " ").split() if word]
