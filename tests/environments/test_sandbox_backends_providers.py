"""The back-ends of providers, none of which is reached: against their libraries in small, and their real shapes."""

from __future__ import annotations

import asyncio
import inspect
import sys
from collections.abc import Callable
from typing import Any

import pytest
import sandbox_contract as contract
import sandbox_fake_providers as fakes

from mcpgym.errors import ConfigurationError
from mcpgym_environments.python_sandbox.backends import kubernetes as pods
from mcpgym_environments.python_sandbox.backends.daytona import Daytona
from mcpgym_environments.python_sandbox.backends.e2b import E2B
from mcpgym_environments.python_sandbox.backends.kubernetes import Kubernetes
from mcpgym_environments.python_sandbox.backends.modal import Modal
from mcpgym_environments.python_sandbox.backends.prime import Prime
from mcpgym_environments.python_sandbox.backends.remote import RemoteBackend
from mcpgym_environments.python_sandbox.sessions.backend import SandboxSpec, Unavailable

Fake = Callable[[fakes.Provider], dict[str, Any]]
PROVIDERS: dict[str, tuple[type[RemoteBackend], Fake, str]] = {
    "e2b": (E2B, fakes.e2b, "E2B_API_KEY"),
    "modal": (Modal, fakes.modal, "MODAL_TOKEN_ID"),
    "daytona": (Daytona, fakes.daytona, "DAYTONA_API_KEY"),
    "prime": (Prime, fakes.prime, "PRIME_API_KEY"),
    "kubernetes": (Kubernetes, fakes.kubernetes, ""),
}
PROMISES = contract.Promises(no_network=False)  # the machines here are processes


@pytest.fixture(params=list(PROVIDERS))
def provided(
    request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch
) -> tuple[type[RemoteBackend], fakes.Provider]:
    """A back-end's class, its library replaced and a key set."""
    backend, fake, key = PROVIDERS[request.param]
    provider = fakes.Provider()
    for name, module in fake(provider).items():
        monkeypatch.setitem(sys.modules, name, module)
    if key:
        monkeypatch.setenv(key, "a-key")
    return backend, provider


@pytest.fixture
def in_small(monkeypatch: pytest.MonkeyPatch) -> Callable[[str], fakes.Provider]:
    def replace(name: str) -> fakes.Provider:
        _, fake, key = PROVIDERS[name]
        provider = fakes.Provider()
        for module, made in fake(provider).items():
            monkeypatch.setitem(sys.modules, module, made)
        if key:
            monkeypatch.setenv(key, "a-key")
        return provider

    return replace


def test_a_provider_keeps_the_contract_and_gets_everything_back(
    provided: tuple[type[RemoteBackend], fakes.Provider],
) -> None:
    backend, provider = provided
    asyncio.run(contract.keeps_the_contract(backend(), PROMISES, contract.CARRIED, again=backend is E2B))
    assert provider.machines
    assert [machine.folder for machine in provider.machines if not machine.ended or machine.folder.exists()] == []


def test_what_a_provider_refuses_is_said_with_a_remedy(
    provided: tuple[type[RemoteBackend], fakes.Provider],
) -> None:
    backend, provider = provided
    provider.refusal = RuntimeError("no credit left\nlots of detail")
    with pytest.raises(Unavailable) as caught:
        asyncio.run(backend().start(SandboxSpec()))
    assert "no credit left" in caught.value.reason or "Forbidden" in caught.value.reason
    assert "lots of detail" not in str(caught.value)
    assert caught.value.remedy


@pytest.mark.parametrize("name", list(PROVIDERS))
def test_a_missing_library_names_its_extra(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    backend, fake, _ = PROVIDERS[name]
    for module in fake(fakes.Provider()):
        monkeypatch.setitem(sys.modules, module, None)
    with pytest.raises(Unavailable, match=r"pip install 'mcpgym\[(e2b|modal|daytona|prime-sandboxes|kubernetes)\]'"):
        asyncio.run(backend().start(SandboxSpec()))


@pytest.mark.parametrize("name", ["e2b", "modal", "daytona", "prime"])
def test_missing_credentials_are_named(
    name: str, in_small: Callable[[str], fakes.Provider], monkeypatch: pytest.MonkeyPatch, tmp_path: Any
) -> None:
    provider = in_small(name)
    backend, _, key = PROVIDERS[name]
    monkeypatch.delenv(key)
    monkeypatch.setenv("MODAL_CONFIG_PATH", str(tmp_path / "none"))
    monkeypatch.delenv("DAYTONA_JWT_TOKEN", raising=False)
    with pytest.raises(Unavailable, match=key):
        asyncio.run(backend().start(SandboxSpec()))
    assert provider.machines == []


def test_the_network_is_closed_and_an_end_is_set_wherever_a_provider_can(
    in_small: Callable[[str], fakes.Provider],
) -> None:
    asked = {}
    for name, (backend, _, _) in PROVIDERS.items():
        provider = in_small(name)
        asked[name] = asyncio.run(_asked(backend(lifetime=600), provider))  # type: ignore[call-arg]
    assert asked["e2b"]["allow_internet_access"] is False
    assert asked["e2b"]["timeout"] == 600
    assert asked["modal"]["block_network"] is True
    assert (asked["modal"]["runtime"], asked["modal"]["timeout"]) == ("gvisor", 600)
    assert asked["daytona"]["network_block_all"] is True
    assert (asked["daytona"]["ttl_minutes"], asked["daytona"]["ephemeral"]) == (10, True)
    assert asked["prime"]["network_allowlist"] == []
    assert asked["prime"]["timeout_minutes"] == 10
    pod = asked["kubernetes"]["spec"]
    assert (pod["activeDeadlineSeconds"], pod["automountServiceAccountToken"]) == (600, False)
    assert pod["containers"][0]["securityContext"]["capabilities"] == {"drop": ["ALL"]}
    assert pod["containers"][0]["securityContext"]["readOnlyRootFilesystem"] is True
    assert pods.network_policy()["spec"]["policyTypes"] == ["Ingress", "Egress"]


async def _asked(backend: RemoteBackend, provider: fakes.Provider) -> dict[str, Any]:
    """What a back-end asks for when it makes a session; no agent gets as far as to begin."""
    await backend.connect(SandboxSpec())
    remote = await backend.create(SandboxSpec())
    await remote.kill()
    await backend.close()
    return provider.machines[0].asked


async def _once(backend: RemoteBackend) -> None:
    await backend.start(SandboxSpec())
    await backend.close()


def test_the_level_is_what_the_place_is(in_small: Callable[[str], fakes.Provider]) -> None:
    in_small("daytona")
    for snapshot, level in (("", "namespaces"), ("daytona-vm-small", "vm")):
        backend = Daytona(snapshot=snapshot)
        asyncio.run(_once(backend))
        assert backend.level == level
    assert Modal(runtime="vm").level == "vm"
    assert [Kubernetes(runtime=name).level for name in ("", "gvisor", "kata-qemu")] == ["namespaces", "gvisor", "vm"]
    with pytest.raises(ConfigurationError, match="gvisor, vm"):
        Modal(runtime="none")  # type: ignore[arg-type]


def test_a_pod_that_cannot_get_its_image_is_no_long_wait(in_small: Callable[[str], fakes.Provider]) -> None:
    provider = in_small("kubernetes")
    with pytest.raises(Unavailable, match="ImagePullBackOff: no missing"):
        asyncio.run(asyncio.wait_for(Kubernetes(image="missing").start(SandboxSpec()), 20))
    assert all(machine.ended for machine in provider.machines)


def test_a_lifetime_that_is_none_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MCPGYM_SANDBOX_LIFETIME", "an hour")
    with pytest.raises(ConfigurationError, match="MCPGYM_SANDBOX_LIFETIME='an hour'"):
        E2B()


# What follows runs where the real library is installed: our calls fit its signatures.


def test_our_calls_fit_e2b() -> None:
    e2b = pytest.importorskip("e2b", reason="needs pip install 'mcpgym[e2b]'")
    from e2b.sandbox_async.commands.command import Commands

    inspect.signature(e2b.AsyncSandbox.create).bind(template=None, timeout=1, metadata={}, allow_internet_access=False)
    inspect.signature(Commands.run).bind(
        None, "x", background=True, stdin=True, on_stdout=print, timeout=0, retain_output=False
    )
    inspect.signature(Commands.send_stdin).bind(None, 1, "x")
    assert {"pid", "wait"} <= set(dir(__import__("e2b").AsyncCommandHandle))


def test_our_calls_fit_modal() -> None:
    modal = pytest.importorskip("modal", reason="needs pip install 'mcpgym[modal]'")
    from modal.io_streams import _StreamReader, _StreamWriter

    inspect.signature(modal.Sandbox.create.aio).bind(
        app=None, image=None, timeout=1, cpu=1.0, memory=(1, 1), runtime="gvisor", block_network=True
    )
    inspect.signature(modal.Sandbox.exec.aio).bind(None, "python3", text=False)
    inspect.signature(modal.Sandbox.terminate.aio).bind(None)
    inspect.signature(modal.App.lookup.aio).bind("x", create_if_missing=True)
    inspect.signature(modal.Image.debian_slim).bind(python_version="3.12")
    inspect.signature(modal.Image.from_registry).bind("x")
    inspect.signature(modal.Image.pip_install).bind(None, "numpy")
    inspect.signature(_StreamWriter.write).bind(None, b"")
    assert hasattr(_StreamReader, "__aiter__")


def test_our_calls_fit_daytona() -> None:
    daytona = pytest.importorskip("daytona", reason="needs pip install 'mcpgym[daytona]'")
    from daytona._async.process import AsyncProcess

    common = {"labels": {}, "ephemeral": True, "auto_stop_interval": 1, "ttl_minutes": 1, "network_block_all": True}
    made = daytona.CreateSandboxFromImageParams(
        image="x", resources=daytona.Resources(cpu=1, memory=2, disk=3), **common
    )
    assert made.network_block_all is True
    assert daytona.CreateSandboxFromSnapshotParams(snapshot="x", **common).ttl_minutes == 1
    request = daytona.SessionExecuteRequest(command="x", run_async=True, suppress_input_echo=True)
    assert request.suppress_input_echo is True
    inspect.signature(daytona.AsyncDaytona.create).bind(None, made, timeout=1.0)
    inspect.signature(daytona.AsyncDaytona.delete).bind(None, None)
    inspect.signature(AsyncProcess.create_session).bind(None, "s")
    inspect.signature(AsyncProcess.execute_session_command).bind(None, "s", request)
    inspect.signature(AsyncProcess.get_session_command_logs_async).bind(None, "s", "c", print, print)
    inspect.signature(AsyncProcess.send_session_command_input).bind(None, "s", "c", "x")


def test_our_calls_fit_prime_sandboxes() -> None:
    prime = pytest.importorskip("prime_sandboxes", reason="needs pip install 'mcpgym[prime-sandboxes]'")
    wanted = prime.CreateSandboxRequest(
        name="x",
        docker_image="x",
        cpu_cores=1.0,
        memory_gb=2.0,
        disk_size_gb=3.0,
        network_allowlist=[],
        timeout_minutes=10,
        labels=["mcpgym"],
    )
    client = prime.AsyncSandboxClient
    inspect.signature(client.create).bind(None, wanted)
    inspect.signature(client.wait_for_creation).bind(None, "x")
    inspect.signature(client.open_process).bind(None, "x", "x", working_dir="/tmp")
    inspect.signature(client.delete).bind(None, "x")
    inspect.signature(prime.AsyncSandboxProcess.write_stdin).bind(None, b"")
    assert isinstance(prime.Config().api_key, str)


def test_our_calls_fit_kubernetes() -> None:
    client = pytest.importorskip("kubernetes.aio.client", reason="needs pip install 'mcpgym[kubernetes]'")
    from kubernetes.aio import config, stream

    core = client.CoreV1Api
    described = pods.pod("x", "image", "gvisor", 600, SandboxSpec())
    pod = client.V1Pod.from_dict(described)
    assert _given(pod.to_dict()) == _snake(described)
    policy = client.V1NetworkPolicy.from_dict(pods.network_policy())
    inspect.signature(core.create_namespaced_pod).bind(None, "n", pod)
    inspect.signature(core.read_namespaced_pod).bind(None, "x", "n")
    inspect.signature(core.delete_namespaced_pod).bind(None, "x", "n", grace_period_seconds=0)
    inspect.signature(core.connect_get_namespaced_pod_attach_without_preload_content).bind(
        None, "x", "n", container="agent", stdin=True, stdout=True, stderr=False, tty=False
    )
    inspect.signature(client.NetworkingV1Api.create_namespaced_network_policy).bind(None, "n", policy)
    inspect.signature(config.load_kube_config).bind(client_configuration=None)
    inspect.signature(config.load_incluster_config).bind(client_configuration=None)
    inspect.signature(stream.WsApiClient).bind(None, heartbeat=30.0)
    assert issubclass(config.ConfigException, Exception)


def _given(value: Any) -> Any:
    """What was given: without what the library adds for what was not."""
    if isinstance(value, dict):
        return {key: _given(inner) for key, inner in value.items() if inner is not None}
    return [_given(inner) for inner in value] if isinstance(value, list) else value


def _snake(value: Any) -> Any:
    if isinstance(value, dict):
        plain = "labels", "matchLabels", "limits", "requests"
        return {
            "".join(f"_{char.lower()}" if char.isupper() else char for char in key): (
                inner if key in plain else _snake(inner)
            )
            for key, inner in value.items()
        }
    return [_snake(inner) for inner in value] if isinstance(value, list) else value
