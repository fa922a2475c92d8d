"""The bodies of requests, checked; and what OpenAPI says of requests and answers."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any, TypeVar

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from mcpgym.calls import CallRecord, CallResult
from mcpgym.control import EnvironmentInfo, TaskInfo
from mcpgym.errors import ConfigurationError
from mcpgym.messages import Message

BodyT = TypeVar("BodyT", bound=BaseModel)


class OpenBody(BaseModel):
    """Which task to open: by its id, or by split and index."""

    model_config = ConfigDict(extra="forbid", strict=True, use_attribute_docstrings=True)

    environment: str
    """The environment's name."""
    task: str | None = None
    """The task's id; then neither split nor index."""
    split: str | None = None
    """The split of the task, with ``index``."""
    index: int | None = None
    """The task's place in its split, from 0."""
    seed: int = 0
    """The seed of the episode's randomness."""
    config: dict[str, Any] | None = None
    """Fields of the environment's configuration to change for this episode."""
    max_turns: int | None = None
    """The episode ends after so many calls, where its environment would allow more."""


class CallBody(BaseModel):
    """One tool call of a step."""

    model_config = ConfigDict(extra="forbid", use_attribute_docstrings=True)

    token: str
    """The episode's token."""
    name: str
    """The tool's name."""
    arguments: dict[str, Any] = Field(default_factory=dict)
    """What the policy gave; what does not fit the tool's schema becomes an error result that it reads."""
    key: str | None = None
    """An idempotency key: a repeated one gets the first call's answer."""


class StepBody(BaseModel):
    """Many calls; those of one episode are answered in their order."""

    calls: list[CallBody]


class MessagesBody(BaseModel):
    """The conversation so far, the prompt first."""

    messages: list[Message]


class ScoreBody(BaseModel):
    """The transcript, where there is one; rewards that need it are null without."""

    model_config = ConfigDict(use_attribute_docstrings=True)

    messages: list[Message] | None = None
    """The whole conversation, the prompt first."""
    claims: dict[str, str] | None = None
    """What the harness says of itself (policy, harness), for the receipt: up to 16 short texts."""


class EnvironmentsAnswer(BaseModel):
    """Every environment that is served."""

    environments: list[EnvironmentInfo]


class TasksAnswer(BaseModel):
    """A page of tasks."""

    tasks: list[TaskInfo]


class StepAnswer(BaseModel):
    """The results, in the order of the calls."""

    results: list[CallResult]


class CallsAnswer(BaseModel):
    """The calls that an episode has answered, in order; ``milliseconds`` is the time inside the environment."""

    calls: list[CallRecord]


class RespondAnswer(BaseModel):
    """What the environment says as the user; null ends the rollout."""

    messages: list[Message] | None


class HealthAnswer(BaseModel):
    """The server is alive: ``ok``, or ``draining`` once it begins no other episode."""

    status: str


class ErrorDetail(BaseModel):
    """What went wrong: a kind for programs and a sentence for people."""

    kind: str
    message: str


class ErrorAnswer(BaseModel):
    """Every answer with a status of 400 or more."""

    error: ErrorDetail


REQUESTS: tuple[type[BaseModel], ...] = (OpenBody, StepBody, MessagesBody, ScoreBody)


def checked(model: type[BodyT], value: Any) -> BodyT:
    """``value`` as ``model``.

    Raises:
        ConfigurationError: it does not fit; the text says where and what would.
    """
    try:
        return model.model_validate(value)
    except ValidationError as error:
        problems = [
            f"{'.'.join(map(str, item['loc'])) or 'the body'}: {item['msg']}"
            + ("" if item["type"] in ("missing", "extra_forbidden") else f", not {_shown(item['input'])}")
            for item in error.errors(include_url=False, include_context=False)[:5]
        ]
        known = ", ".join(model.model_fields)
        raise ConfigurationError(f"{'; '.join(problems)} (fields: {known})") from None


def messages_of(value: Any, *, optional: bool) -> list[Message] | None:
    """The ``messages`` of a body; each is checked by the control plane itself.

    Raises:
        ConfigurationError: the body has another form.
    """
    if optional and value is None:
        return None
    if type(value) is not dict or value.keys() - {"messages"} or not (optional or "messages" in value):
        raise ConfigurationError('the body is {"messages": [...]}, and nothing else')
    messages = value.get("messages")
    if (messages is None and optional) or type(messages) is list:
        return messages
    raise ConfigurationError(f"messages: a list of messages, not {_shown(messages)}")


def scoring_of(value: Any) -> tuple[list[Message] | None, dict[str, Any] | None]:
    """The ``messages`` and ``claims`` of a scoring's body; both are checked by the control plane itself.

    Raises:
        ConfigurationError: the body has another form.
    """
    if type(value) is not dict or "claims" not in value:
        return messages_of(value, optional=True), None
    claims = value["claims"]
    if claims is not None and type(claims) is not dict:
        raise ConfigurationError(f"claims: an object of names and texts, not {_shown(claims)}")
    rest = {name: item for name, item in value.items() if name != "claims"}
    return messages_of(rest, optional=True), claims


def documented(model: type[BaseModel], *, required: bool = True) -> Mapping[str, Any]:
    """The ``openapi_extra`` of a route that takes ``model``."""
    schema = {"$ref": f"#/components/schemas/{model.__name__}"}
    return {"requestBody": {"required": required, "content": {"application/json": {"schema": schema}}}}


def request_schemas() -> dict[str, Any]:
    """The JSON schemas of the request bodies and all they are made of, by name."""
    schemas: dict[str, Any] = {}
    for model in REQUESTS:
        made = model.model_json_schema(ref_template="#/components/schemas/{model}")
        schemas |= made.pop("$defs", {})
        schemas[model.__name__] = made
    return schemas


def _shown(value: Any) -> str:
    text = json.dumps(value, default=lambda other: type(other).__name__)
    return text if len(text) <= 60 else f"{text[:59]}…"
