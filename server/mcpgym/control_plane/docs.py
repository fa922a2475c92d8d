"""The control plane's documentation for people: one page made from the OpenAPI, with nothing fetched from anywhere."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from html import escape
from typing import Any

POLICY = "default-src 'none'; style-src 'unsafe-inline'; frame-ancestors 'none'; base-uri 'none'"
"""The page's Content-Security-Policy: it loads nothing, and runs nothing."""

_STYLE = """
body { font: 16px/1.5 system-ui, sans-serif; max-width: 60rem; margin: 2rem auto; padding: 0 1rem; color: #222; }
h2 { margin-top: 2.5rem; font-size: 1.1rem; border-top: 1px solid #ccc; padding-top: 1rem; }
code, pre { font: 14px/1.45 ui-monospace, monospace; background: #f4f4f2; border-radius: 4px; }
pre { padding: .75rem; overflow-x: auto; } code { padding: .1rem .25rem; }
table { border-collapse: collapse; } td, th { text-align: left; padding: .2rem .8rem .2rem 0; vertical-align: top; }
.method { color: #fff; background: #356; border-radius: 4px; padding: .1rem .5rem; margin-right: .4rem; }
@media (prefers-color-scheme: dark) { body { background: #1b1b1b; color: #ddd; } code, pre { background: #2a2a2a; } }
"""


def page(openapi: Mapping[str, Any]) -> str:
    """The page for an OpenAPI document."""
    info = openapi["info"]
    title = escape(info["title"])
    return (
        "<!doctype html><html lang='en'><head><meta charset='utf-8'>"
        "<meta name='viewport' content='width=device-width, initial-scale=1'>"
        f"<title>{title}</title><style>{_STYLE}</style></head><body><h1>{title} {escape(info['version'])}</h1>"
        f"{_prose(info['description'])}{''.join(_parts(openapi))}</body></html>"
    )


def _parts(openapi: Mapping[str, Any]) -> Iterator[str]:
    yield "<p>The same as JSON: <a href='openapi.json'>openapi.json</a>.</p>"
    for path, methods in openapi["paths"].items():
        for method, operation in methods.items():
            yield f"<h2><span class='method'>{method.upper()}</span><code>{escape(path)}</code></h2>"
            yield f"<p><b>{escape(operation.get('summary', ''))}</b></p>{_prose(operation.get('description', ''))}"
            yield _parameters(operation.get("parameters", []))
            if "requestBody" in operation:
                yield "<p>Body:</p>" + _schema(operation["requestBody"])
            yield _answers(operation["responses"])
    yield "<h1>Bodies</h1>"
    for name, schema in sorted(openapi["components"]["schemas"].items()):
        yield f"<h2 id='{escape(name)}'>{escape(name)}</h2><pre>{escape(json.dumps(schema, indent=1))}</pre>"


def _parameters(parameters: list[Mapping[str, Any]]) -> str:
    rows = "".join(
        f"<tr><td><code>{escape(item['name'])}</code></td><td>{'in the path' if item['in'] == 'path' else 'query'}</td>"
        f"<td>{escape(item.get('description') or item.get('schema', {}).get('description', ''))}</td></tr>"
        for item in parameters
    )
    return f"<table>{rows}</table>" if rows else ""


def _answers(responses: Mapping[str, Mapping[str, Any]]) -> str:
    rows = "".join(
        f"<tr><td>{escape(status)}</td><td>{escape(answer['description'])}</td><td>{_schema(answer)}</td></tr>"
        for status, answer in responses.items()
    )
    return f"<table><tr><th>Status</th><th>When</th><th>Body</th></tr>{rows}</table>"


def _schema(holder: Mapping[str, Any]) -> str:
    for content in holder.get("content", {}).values():
        name = str(content.get("schema", {}).get("$ref", "")).rpartition("/")[2]
        if name:
            return f"<a href='#{escape(name)}'>{escape(name)}</a>"
    return ""


def _prose(text: str) -> str:
    return "".join(f"<p>{escape(part)}</p>" for part in text.split("\n\n") if part)
