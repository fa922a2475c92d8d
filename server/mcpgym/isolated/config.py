"""The configuration of an environment that plays elsewhere: its fields are known here, its rules are asked for."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, ClassVar, Self

from pydantic import Field, ModelWrapValidatorHandler, create_model, model_validator
from pydantic_core import PydanticCustomError

from mcpgym.environment import Config
from mcpgym.isolated.home import Home


class IsolatedConfig(Config):
    """Values that the environment itself has found right, as JSON. Under its defaults nobody is asked."""

    home: ClassVar[Home]
    environment_name: ClassVar[str]
    described: ClassVar[dict[str, Any]]

    @model_validator(mode="wrap")
    @classmethod
    def _as_the_environment_says(cls, data: Any, handler: ModelWrapValidatorHandler[Self]) -> Self:
        if not isinstance(data, Mapping) or not data:
            return handler(data)
        given = {"environment": cls.environment_name, "config": dict(data)}
        try:
            found = cls.home.child().ask_now("canonical", given)
        except (ValueError, TypeError, RecursionError) as error:
            raise PydanticCustomError("isolated", "{problem}", {"problem": str(error)}) from None
        return handler(found)

    def reaches(self) -> Sequence[str]:
        """What the environment says that these values reach."""
        given = {"environment": self.environment_name, "config": self.model_dump(mode="json", exclude_unset=True)}
        found: list[str] = self.home.child().ask_now("reaches", given)
        return found

    @classmethod
    def model_json_schema(cls, *arguments: Any, **named: Any) -> dict[str, Any]:
        """The schema of the environment's own configuration."""
        return cls.described


def config_class_of(home: Home, name: str, about: Mapping[str, Any]) -> type[IsolatedConfig]:
    """The configuration of the environment that is called ``name``."""
    described = about["config_schema"]
    fields = _fields(described, described.get("$defs", {}), about["config"])
    made: type[IsolatedConfig] = create_model("Config", __base__=IsolatedConfig, **fields)
    made.home, made.environment_name, made.described = home, name, described
    return made


def _fields(schema: Mapping[str, Any], definitions: Mapping[str, Any], defaults: Mapping[str, Any]) -> dict[str, Any]:
    """The fields that a schema describes; one that is a configuration itself, a section, is one here too."""
    found: dict[str, Any] = {}
    for field, default in defaults.items():
        about = schema.get("properties", {}).get(field, {})
        inner = definitions.get(str(about.get("$ref", "")).rpartition("/")[2], {})
        kind: Any = Any
        if "properties" in inner and inner.get("additionalProperties") is False and isinstance(default, Mapping):
            kind = create_model(field, __base__=Config, **_fields(inner, definitions, default))
            default = kind()
        found[field] = (kind, Field(default, description=str(about.get("description", ""))))
    return found
