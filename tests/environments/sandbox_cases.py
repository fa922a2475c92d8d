"""Every abuse case of the Python sandbox, from files that each hold one kind."""

from __future__ import annotations

from sandbox_case import Case
from sandbox_cases_files import FILES
from sandbox_cases_interpreter import INTERPRETER
from sandbox_cases_kernel import KERNEL
from sandbox_cases_memory import DISK, MEMORY
from sandbox_cases_processes import PROCESSES
from sandbox_cases_protocol import PROTOCOL

CASES: tuple[Case, ...] = MEMORY + DISK + PROCESSES + FILES + KERNEL + PROTOCOL + INTERPRETER

assert len({case.name for case in CASES}) == len(CASES), "names are unique"
