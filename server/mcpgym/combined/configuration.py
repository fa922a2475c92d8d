"""The configuration of a combination: one section for each member, and how they make one episode."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, ClassVar, Literal, Self

from pydantic import Field, create_model, model_validator

from mcpgym.environment import Config, Environment


class CombinedConfig(Config):
    """What every combination has beside its members' sections."""

    mounts: ClassVar[tuple[str, ...]] = ()

    ends: Literal["all", "any"] = "all"
    """When the episode is over: when all of its parts are, or as soon as any is."""
    lengths: Literal["shortest", "longest"] = "shortest"
    """How many tasks a split has: as many as its shortest member, so that no task comes twice; or as its longest,
    where the shorter ones begin again."""

    def reaches(self) -> Sequence[str]:
        """What the members' sections reach."""
        return [f"{mount}.{said}" for mount in self.mounts for said in getattr(self, mount).reaches()]


class Weights(Config):
    """The weight of each member's total in the combined score, which is their weighted mean."""

    @model_validator(mode="after")
    def _something_counts(self) -> Self:
        if not sum(self.model_dump().values()) > 0:
            raise ValueError("the weights add up to 0; let at least one member count")
        return self


def config_class_of(members: Mapping[str, type[Environment[Any, Any, Any]]]) -> type[CombinedConfig]:
    """The configuration of a combination of ``members``."""
    weights = create_model(
        "Weights",
        __base__=Weights,
        **{
            mount: (float, Field(1.0, ge=0, le=1e6, allow_inf_nan=False, description=f"The weight of {mount}."))
            for mount in members
        },
    )  # type: ignore[call-overload]
    sections: dict[str, Any] = {}
    for mount, member in members.items():
        required = any(field.is_required() for field in member.config_class.model_fields.values())
        default = ... if required else member.config_class()
        sections[mount] = (member.config_class, Field(default, description=f"The configuration of {member.name}."))
    sections["weights"] = (weights, Field(weights(), description="What each member counts in the score."))
    made: type[CombinedConfig] = create_model("CombinedConfig", __base__=CombinedConfig, **sections)
    made.mounts = tuple(members)
    return made
