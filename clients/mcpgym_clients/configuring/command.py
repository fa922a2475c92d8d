"""A command that a file and environment variables configure, as well as its flags."""

from __future__ import annotations

from typing import Any

from typer.core import TyperCommand

_APPLIED = "mcpgym.applied"


class ConfiguredCommand(TyperCommand):
    """A command whose options are also read from environment variables and from a file (see ``docs/configuration.md``).

    Both are looked at when it is run, and nothing of that is imported before.
    """

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        """As Typer does, with the file's values as defaults; what is wrong with a value says where it was written."""
        from mcpgym_clients.configuring.applying import Applied
        from mcpgym_clients.configuring.files import ConfigurationProblem

        try:
            applied = Applied.to(self, ctx, args)
        except ConfigurationProblem:
            self._help_all_the_same(ctx, args)
            raise
        ctx.meta[_APPLIED] = applied
        try:
            return super().parse_args(ctx, args)
        except Exception as error:
            applied.say_where(error)
            raise

    def invoke(self, ctx: Any) -> Any:
        """Do the command's work, under the configuration of the environments that were named."""
        applied = ctx.meta[_APPLIED]
        applied.complete()
        try:
            return super().invoke(ctx)
        except Exception as error:
            applied.say_where(error)
            raise

    def _help_all_the_same(self, ctx: Any, args: list[str]) -> None:
        try:
            super().parse_args(ctx, list(args))  # ends here where --help was asked for
        except Exception as error:
            if not hasattr(error, "format_message"):
                raise
