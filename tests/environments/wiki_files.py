"""A small encyclopedia and questions about it, as files that a user could have written."""

from __future__ import annotations

import json
from pathlib import Path

PAGES = [
    {
        "id": "oder",
        "title": "Oder",
        "aliases": ["Odra"],
        "sections": [
            {"heading": "Oder", "text": "The Oder is a river. It rises in the Oder Mountains and is 840 km long."},
            {
                "heading": "Course",
                "level": 2,
                "text": "It passes Wroclaw and Szczecin. " + "It flows on and on. " * 120,
            },
        ],
    },
    {
        "id": "wroclaw",
        "title": "Wrocław",
        "text": "Wrocław is a city on the Oder.\n\n## People\n\nMax Born was born here.",
    },
    {"id": "born", "title": "Max Born", "text": "Max Born was a physicist, born on 11 December 1882 in Wrocław."},
    *({"id": f"filler-{n}", "title": f"Filler {n}", "text": f"Nothing stands in the filler {n}."} for n in range(8)),
]
QUESTIONS = [
    {"question": "How long is the Oder?", "type": "number", "answers": ["840"], "unit": "km", "evidence": ["Oder"]},
    {"question": "Who was born in Wrocław?", "answers": ["Max Born"], "evidence": [["Wrocław", "People"]]},
]


def write_files(folder: Path) -> tuple[str, str]:
    """Both as files below ``folder``: what ``corpus`` and ``questions`` are then."""
    (folder / "pages").mkdir()
    (folder / "pages" / "all.jsonl").write_text("".join(json.dumps(page) + "\n" for page in PAGES), "utf-8")
    questions = folder / "questions.jsonl"
    questions.write_text("".join(json.dumps(row | {"split": "test"}) + "\n" for row in QUESTIONS), "utf-8")
    return f"folder:{folder / 'pages'}", str(questions)
