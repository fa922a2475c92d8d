"""Run by vLLM's own Python: what its argument parser and its lists of parsers say to lines of ``vllm serve``.

Reads a JSON list of argument lists, writes one of problems (null where there is none).
"""

from __future__ import annotations

import json
import sys
from typing import Any


def main() -> None:
    """Answer on the standard output."""
    told, sys.stdout = sys.stdout, sys.stderr
    from vllm.entrypoints.launchers.cli_args import make_arg_parser, validate_parsed_serve_args
    from vllm.reasoning import ReasoningParserManager
    from vllm.tool_parsers import ToolParserManager
    from vllm.utils.argparse_utils import FlexibleArgumentParser

    parser = make_arg_parser(FlexibleArgumentParser(exit_on_error=False))

    def refuse(message: str) -> None:
        raise ValueError(message)

    parser.error = refuse
    answers: list[str | None] = []
    for words in json.load(sys.stdin):
        try:
            read: Any = parser.parse_args(words)
            validate_parsed_serve_args(read)
            for name, known in (
                (read.tool_call_parser, ToolParserManager.list_registered()),
                (getattr(read, "reasoning_parser", ""), ReasoningParserManager.list_registered()),
            ):
                if name and name not in known:
                    raise ValueError(f"there is no parser {name}: {known}")
            answers.append(None)
        except (Exception, SystemExit) as error:
            answers.append(str(error) or type(error).__name__)
    print(json.dumps(answers), file=told)


if __name__ == "__main__":
    main()
