"""A session with the same seed draws the same numbers; hashes and addresses in texts repeat from session to session."""

from __future__ import annotations

import pytest
from sandbox_agents import BOTH, INSIDE, shown, with_session

from mcpgym_environments.python_sandbox.sessions.session import Session

DRAW = "import random\nrandom.random(), random.randrange(10**9), random.sample(range(100), 3)"


def drawn(seed: int, code: str = DRAW, *, backend: str = "", packages: tuple[str, ...] = ()) -> bytes:
    """What a session with this seed shows of some code."""

    async def act(session: Session) -> bytes:
        ran = await session.run(code)
        assert ran.status == "ok", ran.output.decode()
        return ran.output

    return with_session(act, backend, seed=seed, packages=packages)


@BOTH
def test_random_numbers_follow_the_seed(backend: str) -> None:
    assert drawn(5, backend=backend) == drawn(5, backend=backend)
    assert drawn(5, backend=backend) != drawn(6, backend=backend)
    import random

    expected = random.Random(5).random()
    assert drawn(5, "import random\nrandom.random()", backend=backend).decode() == f"{expected!r}\n"


def test_numpys_numbers_follow_the_seed() -> None:
    pytest.importorskip("numpy")
    code = "import numpy\nnumpy.random.rand(2), numpy.random.randint(10**9)"
    first, again, other = (drawn(seed, code, packages=("numpy",)) for seed in (2**63 - 1, 2**63 - 1, 1))
    assert first == again != other


@BOTH
def test_hashes_and_the_order_of_sets_are_the_same_in_all_sessions(backend: str) -> None:
    code = "list({'one', 'two', 'three', 'four', 'five'}), hash('text')"
    assert shown(code, backend=backend) == shown(code, backend=backend)
    assert shown("import sys\nsys.flags.hash_randomization", backend=backend) in ("0\n", "1\n")
    assert shown("import os\nos.environ['PYTHONHASHSEED']", backend=backend) == "'0'\n"


def test_a_fresh_worker_and_a_reset_begin_again_with_the_seed() -> None:
    async def act(session: Session) -> list[bytes]:
        found = [(await session.run(DRAW)).output]
        await session.run("import os\nos._exit(1)")
        found.append((await session.run(DRAW)).output)
        await session.reset()
        found.append((await session.run(DRAW)).output)
        await session.reset(8)
        found.append((await session.run(DRAW)).output)
        await session.reset()
        found.append((await session.run(DRAW)).output)
        return found

    first, after_crash, after_reset, other, again = with_session(act, INSIDE, seed=7)
    assert first == after_crash == after_reset
    assert other == again == drawn(8)
    assert first != other
