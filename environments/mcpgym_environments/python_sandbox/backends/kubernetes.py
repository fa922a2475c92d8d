"""Kubernetes: each session a pod of its own, without a network, account or rights.

The level is what the cluster's runtime class makes of it: ``gvisor`` where its name says so, ``vm`` for Kata, else
``namespaces``. A network policy that lets nothing in or out is made beforehand; it holds only where the cluster's
network enforces policies, which no client can see.
"""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Mapping
from typing import Any
from uuid import uuid4

from mcpgym_environments.python_sandbox.backends.program import command
from mcpgym_environments.python_sandbox.backends.remote import OPEN_SECONDS, RemoteBackend
from mcpgym_environments.python_sandbox.backends.settings import IMAGE, LIFETIME, needed, setting, whole
from mcpgym_environments.python_sandbox.sessions.backend import JSON, Level, SandboxSpec, Unavailable

LABEL = {"app.kubernetes.io/managed-by": "mcpgym", "app.kubernetes.io/component": "python-sandbox"}
POLICY = "mcpgym-python-sandbox"
HOPELESS = ("ErrImagePull", "ImagePullBackOff", "InvalidImageName", "CreateContainerConfigError")
"""What a container waits for in vain."""
INPUT, OUTPUT = 0, 1
"""Channels of an attached container's web socket."""


class Kubernetes(RemoteBackend):
    """The back-end ``kubernetes``.

    Args:
        image: an image that has Python.
        namespace: where the pods go.
        runtime: a runtime class of the cluster, such as ``gvisor``; the cluster's default without one.
        lifetime: seconds after which the cluster ends a pod by itself.
    """

    name = "kubernetes"
    level: Level = "namespaces"
    remedy = "Check that kubectl can create pods in that namespace, and attach to them."

    def __init__(
        self,
        image: str | None = None,
        namespace: str | None = None,
        runtime: str | None = None,
        lifetime: int | None = None,
    ) -> None:
        super().__init__()
        self._image = setting("image", image, IMAGE)
        self._namespace = setting("namespace", namespace, "default")
        self._runtime = setting("runtime", runtime, "")
        self._lifetime = whole("lifetime", lifetime, LIFETIME)
        self.level = level_of(self._runtime)
        self._client: Any = None
        self._api: Any = None
        self._plain: Any = None
        self._attaching: Any = None

    async def connect(self, spec: SandboxSpec) -> None:
        """Load the library and the cluster's address, and see to the network policy.

        Raises:
            Unavailable: the library, or any configuration of a cluster, is missing; or the policy cannot be made.
        """
        self._client = client = needed("kubernetes.aio.client", "kubernetes")
        config = needed("kubernetes.aio.config", "kubernetes")
        stream = needed("kubernetes.aio.stream", "kubernetes")
        configuration = client.Configuration()
        try:
            await config.load_kube_config(client_configuration=configuration)
        except (config.ConfigException, OSError):
            try:
                config.load_incluster_config(client_configuration=configuration)
            except (config.ConfigException, OSError) as error:
                raise Unavailable(
                    "kubernetes: there is neither a kubeconfig nor a cluster around this process",
                    "Set KUBECONFIG, or run inside a pod.",
                ) from error
        self._plain = client.ApiClient(configuration)
        self._attaching = stream.WsApiClient(configuration, heartbeat=30.0)
        self._api = client.CoreV1Api(self._plain)
        policy = client.V1NetworkPolicy.from_dict(network_policy())
        try:
            await client.NetworkingV1Api(self._plain).create_namespaced_network_policy(self._namespace, policy)
        except client.ApiException as error:
            if error.status != 409:  # it is there
                raise Unavailable(
                    f"kubernetes: the network policy {POLICY} cannot be made in {self._namespace}: {error.reason}",
                    "Let this account create networkpolicies there, or create that policy yourself.",
                ) from error

    async def create(self, spec: SandboxSpec) -> KubernetesProcess:
        """A pod that runs the agent's command, once it runs, with its input and output attached."""
        name = f"mcpgym-{uuid4().hex[:16]}"
        described = pod(name, self._image, self._runtime, self._lifetime, spec)
        await self._api.create_namespaced_pod(self._namespace, self._client.V1Pod.from_dict(described))
        try:
            await self._running(name)
            attaching = self._client.CoreV1Api(self._attaching)
            connecting = await attaching.connect_get_namespaced_pod_attach_without_preload_content(
                name, self._namespace, container="agent", stdin=True, stdout=True, stderr=False, tty=False
            )
            socket = await connecting  # the library gives what is still to be awaited: an open web socket
        except BaseException:
            await asyncio.shield(self._delete(name))
            raise
        return KubernetesProcess(self, name, socket)

    async def _running(self, name: str) -> None:
        deadline = asyncio.get_running_loop().time() + OPEN_SECONDS
        while True:
            status = (await self._api.read_namespaced_pod(name, self._namespace)).status
            if status.phase == "Running":
                return
            if status.phase in ("Failed", "Succeeded"):
                raise OSError(f"the pod ended at once ({status.reason or status.phase})")
            waiting = [found.state.waiting for found in status.container_statuses or () if found.state]
            hopeless = [found for found in waiting if found and found.reason in HOPELESS]
            if hopeless:
                raise OSError(f"the pod cannot run {self._image}: {hopeless[0].reason}: {hopeless[0].message}")
            if asyncio.get_running_loop().time() > deadline:
                said = [found.message for found in status.conditions or () if found.status == "False" and found.message]
                raise OSError(f"the pod did not run within {OPEN_SECONDS:g} s: {'; '.join(said) or status.phase}")
            await asyncio.sleep(0.25)

    async def _delete(self, name: str) -> None:
        with contextlib.suppress(self._client.ApiException):
            await self._api.delete_namespaced_pod(name, self._namespace, grace_period_seconds=0)

    async def disconnect(self) -> None:
        """Close the connections."""
        held, self._plain, self._attaching = (self._plain, self._attaching), None, None
        for connection in held:
            if connection is not None:
                await connection.close()

    def facts(self) -> Mapping[str, JSON]:
        """Which image, and which runtime class."""
        return {"image": self._image, "runtime": self._runtime or "default"}


class KubernetesProcess:
    """A pod with its container's input and output on a web socket: each message is a channel and bytes."""

    def __init__(self, backend: Kubernetes, name: str, socket: Any) -> None:
        self._backend = backend
        self._name = name
        self._socket = socket

    async def write(self, data: bytes) -> None:
        """Write all of it to its input."""
        for start in range(0, len(data), 1 << 16):
            await self._socket.send_bytes(bytes([INPUT]) + data[start : start + (1 << 16)])

    async def read(self) -> bytes:
        """More of its output."""
        async for message in self._socket:
            data = message.data.encode() if isinstance(message.data, str) else message.data
            if data[:1] == bytes([OUTPUT]) and len(data) > 1:
                return bytes(data[1:])
        return b""

    async def kill(self) -> None:
        """Delete the pod."""
        await self._backend._delete(self._name)
        with contextlib.suppress(Exception):
            await self._socket.close()


def level_of(runtime: str) -> Level:
    """What a container runtime of this name keeps in."""
    if "gvisor" in runtime or "runsc" in runtime:
        return "gvisor"
    return "vm" if "kata" in runtime or "firecracker" in runtime else "namespaces"


def pod(name: str, image: str, runtime: str, lifetime: int, spec: SandboxSpec) -> dict[str, Any]:
    """The description of a session's pod."""
    limits = spec.limits
    size = str(limits.workspace_bytes)
    inside: dict[str, Any] = {
        "name": "agent",
        "image": image,
        "command": command(),
        "workingDir": "/work",
        "stdin": True,
        "stdinOnce": True,
        "env": [{"name": "TMPDIR", "value": "/tmp"}, {"name": "HOME", "value": "/work"}],
        "resources": {
            "limits": {"cpu": "1", "memory": str(limits.memory + 2 * limits.workspace_bytes + 2**28)},
            "requests": {"cpu": "100m", "memory": "128Mi"},
        },
        "securityContext": {
            "allowPrivilegeEscalation": False,
            "capabilities": {"drop": ["ALL"]},
            "privileged": False,
            "readOnlyRootFilesystem": True,
        },
        "volumeMounts": [{"name": "work", "mountPath": "/work"}, {"name": "tmp", "mountPath": "/tmp"}],
    }
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": name, "labels": LABEL},
        "spec": {
            **({"runtimeClassName": runtime} if runtime else {}),
            "activeDeadlineSeconds": lifetime,
            "automountServiceAccountToken": False,
            "enableServiceLinks": False,
            "dnsPolicy": "Default",
            "restartPolicy": "Never",
            "terminationGracePeriodSeconds": 0,
            "securityContext": {
                "runAsNonRoot": True,
                "runAsUser": 1000,
                "runAsGroup": 1000,
                "fsGroup": 1000,
                "seccompProfile": {"type": "RuntimeDefault"},
            },
            "containers": [inside],
            "volumes": [
                {"name": "work", "emptyDir": {"medium": "Memory", "sizeLimit": size}},
                {"name": "tmp", "emptyDir": {"medium": "Memory", "sizeLimit": size}},
            ],
        },
    }


def network_policy() -> dict[str, Any]:
    """The description of a policy that lets nothing into or out of our pods."""
    return {
        "apiVersion": "networking.k8s.io/v1",
        "kind": "NetworkPolicy",
        "metadata": {"name": POLICY, "labels": LABEL},
        "spec": {"podSelector": {"matchLabels": LABEL}, "policyTypes": ["Ingress", "Egress"]},
    }
