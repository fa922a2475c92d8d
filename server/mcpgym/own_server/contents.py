"""What a policy reads of a brought tool's result: its text. What is no text is refused, by name."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

from mcpgym.errors import ToolError

if TYPE_CHECKING:
    from mcp_types import CallToolResult

MAX_TEXT = 1_000_000
"""Characters of one result beyond which it is refused."""


def text_of(tool: str, result: CallToolResult) -> str:
    """The text of a result: its texts, line by line; the JSON of its structured content where it has nothing else.

    Raises:
        ToolError: the server flagged it as an error (with its text), it has an image, a sound or other bytes, or it is
            longer than ``MAX_TEXT``.
    """
    texts: list[str] = []
    unread: list[str] = []
    for block in result.content:
        _read(block, texts, unread)
    if (size := sum(map(len, texts))) > MAX_TEXT:
        raise ToolError(f"{tool} answered with {size:,} characters; {MAX_TEXT:,} at most are read. Ask for less")
    if not texts and not unread and result.structured_content is not None:
        texts.append(json.dumps(result.structured_content, ensure_ascii=False))
        if len(texts[0]) > MAX_TEXT:
            raise ToolError(f"{tool} answered with {len(texts[0]):,} characters; {MAX_TEXT:,} at most are read")
    text = "\n".join(texts)
    if unread:
        raise ToolError(
            f"{tool} answered with {' and '.join(unread)}; only text can be read here" + (f":\n{text}" if text else "")
        )
    if result.is_error:
        raise ToolError(text or f"{tool} failed and did not say why")
    return text


def _read(block: Any, texts: list[str], unread: list[str]) -> None:
    match block.type:
        case "text":
            texts.append(block.text)
        case "resource_link":
            about = f" ({block.description})" if block.description else ""
            texts.append(f"{block.title or block.name}: {block.uri}{about}")
        case "resource" if hasattr(block.resource, "text"):
            texts.append(block.resource.text)
        case "resource":
            unread.append(f"a file ({block.resource.mime_type or 'no text'})")
        case "image":
            unread.append(f"an image ({block.mime_type})")
        case "audio":
            unread.append(f"a sound ({block.mime_type})")
        case other:
            unread.append(f"content of the kind {other!r}")
