"""The filters of system calls, run call by call for both processors as the kernel runs them."""

from __future__ import annotations

import errno
import re
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from sandbox_bpf import AARCH64, ALLOWED, I386, KILLED, X86_64, decide

from mcpgym_environments.python_sandbox.jail import seccomp
from mcpgym_environments.python_sandbox.jail.seccomp import (
    NEVER,
    NEWEST,
    NUMBERS,
    Rules,
    lone_worker_rules,
    session_rules,
    worker_rules,
)

MACHINES = {"x86_64": X86_64, "aarch64": AARCH64}
PID = 4321
NAMESPACES = (0x0002_0000, 0x0200_0000, 0x0400_0000, 0x0800_0000, 0x1000_0000, 0x2000_0000, 0x4000_0000)
THREAD = 0x3D0F00
"""The flags that the C library starts a thread with."""


def finished(rules: Rules) -> list[tuple[int, int, int, int]]:
    return [*rules.program, (0x06, 0, 0, 0x7FFF_0000)]


def all_rules(machine: str) -> dict[str, list[tuple[int, int, int, int]]]:
    return {
        "session": finished(session_rules(machine)),
        "worker": finished(worker_rules(machine)),
        "alone": finished(lone_worker_rules(7, PID, machine)),
        "old": finished(lone_worker_rules(1, PID, machine)),
    }


class Machine:
    def __init__(self, name: str) -> None:
        self.name = name
        self.column = list(MACHINES).index(name)
        self.programs = all_rules(name)

    def call(self, rules: str, name: str, *arguments: int) -> int:
        number = NUMBERS[name][self.column]
        assert number >= 0, name
        return decide(self.programs[rules], MACHINES[self.name], number, *arguments)


@pytest.fixture(scope="module", params=list(MACHINES))
def machine(request: pytest.FixtureRequest) -> Machine:
    return Machine(request.param)


def test_no_session_makes_a_call_of_the_list(machine: Machine) -> None:
    refused = {name: machine.call("session", name) for name in NEVER if NUMBERS[name][machine.column] >= 0}
    assert set(refused.values()) == {errno.EPERM, errno.ENOSYS}
    assert {name for name, why in refused.items() if why == errno.ENOSYS} <= seccomp.ABSENT
    assert {"mount", "ptrace", "bpf", "io_uring_setup", "memfd_create", "socket", "keyctl", "setns"} <= NEVER


def test_namespaces_cannot_be_made_by_any_call(machine: Machine) -> None:
    for flag in NAMESPACES:
        assert machine.call("session", "clone", flag | 17) == errno.EPERM
        assert machine.call("session", "clone", flag | THREAD) == errno.EPERM
    assert machine.call("session", "clone3") == errno.ENOSYS  # its flags lie in memory, which no filter can read
    assert machine.call("session", "clone", THREAD) == ALLOWED
    assert machine.call("session", "clone", 17) == ALLOWED


def test_other_tables_of_calls_are_closed(machine: Machine) -> None:
    for program in machine.programs.values():
        assert decide(program, I386, 1) == KILLED
        assert decide(program, 0, 1) == KILLED
        assert decide(program, MACHINES[machine.name], 0x4000_0000 | NUMBERS["socket"][0]) == errno.ENOSYS
        assert decide(program, MACHINES[machine.name], NEWEST + 1) == errno.ENOSYS
        assert decide(program, MACHINES[machine.name], 0x7FFF_FFFF) == errno.ENOSYS


def test_a_worker_touches_itself_only(machine: Machine) -> None:
    for name in ("prlimit64", "sched_setaffinity", "sched_setattr", "sched_setparam", "sched_setscheduler"):
        assert machine.call("worker", name, 0) == ALLOWED
        assert machine.call("worker", name, 1) == errno.EPERM
        assert machine.call("session", name, 1) == ALLOWED  # init sets its worker's limits
    assert machine.call("worker", "setpriority", 0, 0) == ALLOWED
    assert {machine.call("worker", "setpriority", which, 1) for which in (0, 1, 2)} == {errno.EPERM}
    assert machine.call("worker", "setpriority", 2, 0) == errno.EPERM  # all processes of its user
    assert machine.call("worker", "ioprio_set", 1, 0) == ALLOWED
    assert machine.call("worker", "ioprio_set", 3, 1000) == errno.EPERM
    assert machine.call("worker", "prctl", 1, 0) == errno.EPERM  # it must die with its init
    assert machine.call("worker", "prctl", 15) == ALLOWED


def test_sockets_are_pairs_of_streams(machine: Machine) -> None:
    flags = 0o2000000 | 0o4000
    assert machine.call("worker", "socketpair", 1, 1 | flags) == ALLOWED
    assert machine.call("worker", "socketpair", 1, 2 | flags) == errno.EPERM  # a datagram goes to any address
    assert machine.call("worker", "socketpair", 1, 5) == errno.EPERM
    assert machine.call("worker", "socketpair", 2, 1) == errno.EAFNOSUPPORT
    assert machine.call("worker", "sendto", 5, 0x1000, 8, 0, 0, 0) == ALLOWED
    assert machine.call("worker", "sendto", 5, 0x1000, 8, 0, 0x7FFF_0000_0000, 110) == errno.EPERM
    assert machine.call("worker", "sendto", 5, 0x1000, 8, 0, 0x1_0000_0000, 110) == errno.EPERM


def test_locks_and_watches_of_shared_files(machine: Machine) -> None:
    assert machine.call("worker", "flock", 3, 2) == 0
    for command in (6, 7, 37, 38):
        assert machine.call("worker", "fcntl", 3, command) == 0
    for command in (8, 10, 15, 1024, 1026, 1031):
        assert machine.call("worker", "fcntl", 3, command) == errno.EPERM
    for command in (0, 1, 2, 3, 4, 5, 1030):
        assert machine.call("worker", "fcntl", 3, command) == ALLOWED
    assert machine.call("session", "inotify_init1") == errno.EPERM


def test_without_namespaces_there_is_one_process(machine: Machine) -> None:
    assert machine.call("alone", "clone", THREAD) == ALLOWED
    assert machine.call("alone", "clone", 17) == errno.EPERM
    assert machine.call("alone", "clone", 0x4111) == errno.EPERM  # as vfork
    for name in ("execve", "execveat", "sendmsg"):
        assert machine.call("alone", name) == errno.EPERM
        assert machine.call("worker", name) == ALLOWED
    for name in ("fchmod", "fchmodat", "utimensat"):  # Landlock does not look at these
        assert machine.call("alone", name) == 0
    for name in ("fchown", "fchownat"):
        assert machine.call("alone", name) == errno.EPERM


def test_an_old_landlock_is_made_up_for(machine: Machine) -> None:
    assert machine.call("alone", "kill", 1) == ALLOWED  # the kernel sees to it
    assert machine.call("old", "kill", PID) == ALLOWED
    assert machine.call("old", "tgkill", PID, PID) == ALLOWED
    for process in (0, 1, PID + 1, -1):
        assert machine.call("old", "kill", process) == errno.EPERM
        assert machine.call("old", "tgkill", process) == errno.EPERM
    for name in ("tkill", "rt_sigqueueinfo", "rt_tgsigqueueinfo", "pidfd_send_signal", "truncate"):
        assert machine.call("old", name, PID) == errno.EPERM


@given(number=st.integers(0, NEWEST), arguments=st.tuples(*[st.integers(0, 2**64 - 1)] * 6))
def test_what_no_rule_names_is_allowed(number: int, arguments: tuple[int, ...]) -> None:
    for column, name in enumerate(MACHINES):
        if number not in {numbers[column] for numbers in NUMBERS.values()}:
            for program in PROGRAMS[name].values():
                assert decide(program, MACHINES[name], number, *arguments) == ALLOWED


PROGRAMS = {name: all_rules(name) for name in MACHINES}


def test_programs_are_as_the_kernel_wants_them() -> None:
    for programs in PROGRAMS.values():
        for program in programs.values():
            assert len(program) < 4096
            assert all(max(if_true, if_false) < 256 for _, if_true, if_false, _ in program)


def test_numbers_are_those_of_the_headers() -> None:
    """Both tables against the headers of this machine, where it has them."""
    headers = (
        Path("/usr/include/x86_64-linux-gnu/asm/unistd_64.h"),
        Path("/usr/include/asm-generic/unistd.h"),
    )
    looked = 0
    for column, header in enumerate(headers):
        if header.exists():
            found = re.findall(r"#define __NR(?:3264)?_(\w+)\s+(\d+)", header.read_text())
            known = {name: int(number) for name, number in found}
            wrong = {
                name: (numbers[column], known.get(name))
                for name, numbers in NUMBERS.items()
                if name in known and known[name] != numbers[column]
            }
            assert wrong == {}
            looked += sum(name in known for name in NUMBERS)
    for column in range(2):
        numbers = [both[column] for both in NUMBERS.values() if both[column] >= 0]
        assert len(set(numbers)) == len(numbers)
    if not looked:
        pytest.skip("this machine has no kernel headers")


def test_an_unknown_processor_is_refused() -> None:
    with pytest.raises(OSError, match="no table of system calls for riscv64"):
        Rules("riscv64")
