"""What the templates of encyclopedias show: the common ones within sentences, and infoboxes."""

from __future__ import annotations

import calendar
import re
from collections.abc import Callable, Iterable, Mapping
from typing import Any

Renderer = Callable[[list[str], Mapping[str, str]], str]
"""From positional and named parameters to text."""

_INFOBOX = re.compile(
    r"(infobox|taxobox|speciesbox|automatic taxobox|chembox|drugbox|geobox|ficha|info(tabel|casella|caja)?\b)", re.I
)
_PICTURE = re.compile(
    r"(^|[ _])(image|photo|picture|logo|icon|map|caption|alt|width|size|upright|colou?r|style|footnotes?|ref|url|"
    r"website|embed|module|module\d|signature|audio|coordinates|coor|lat[dms]?|long?[dms]?|pushpin|seal|flag|coat|"
    r"mapframe|zoom|wikidata)s?(\d|[ _]|$)",
    re.I,
)
_MONTH_NAMES = calendar.month_name[1:]


def is_infobox(name: str, named: Mapping[str, Any]) -> bool:
    """Whether a template is a box of facts rather than part of a sentence."""
    return bool(_INFOBOX.match(name)) and len(named) > 0


def shown_fields(named: Mapping[str, Any]) -> Iterable[tuple[str, Any]]:
    """The parameters of an infobox that are facts, under readable names; pictures and layout are left out."""
    for name, value in named.items():
        if not _PICTURE.search(name) and not name.isdigit():
            yield name.replace("_", " "), value


def rendered_template(name: str, values: list[str], named: Mapping[str, str]) -> str:
    """What a template within a sentence shows; nothing for those that are not known (notes, navigation, layout)."""
    key = name.casefold()
    key = re.sub(r"^(template|subst):\s*", "", key)
    if ":" in key and key.partition(":")[0] in ("formatnum", "lc", "uc", "lcfirst", "ucfirst", "nowrap", "padleft"):
        head, _, rest = name.partition(":")
        return {"lc": rest.lower(), "uc": rest.upper()}.get(head.casefold(), rest)
    if key.startswith("lang-"):
        return values[0] if values else ""
    renderer = RENDERERS.get(key)
    return renderer(values, named) if renderer is not None else ""


def _first(values: list[str], named: Mapping[str, str]) -> str:
    return values[0] if values else named.get("1", named.get("text", ""))


def _second(values: list[str], named: Mapping[str, str]) -> str:
    return values[1] if len(values) > 1 else _first(values, named)


def _last(values: list[str], named: Mapping[str, str]) -> str:
    return values[-1] if values else ""


def _commas(values: list[str], named: Mapping[str, str]) -> str:
    return ", ".join(filter(None, values))


def _lines(values: list[str], named: Mapping[str, str]) -> str:
    return "\n" + "".join(f"* {value}\n" for value in values if value)


def _listed(values: list[str], named: Mapping[str, str]) -> str:
    return re.sub(r"\s*\n\s*[*#]\s*", ", ", "\n" + _first(values, named).strip()).removeprefix(", ")


def _date(values: list[str], named: Mapping[str, str]) -> str:
    """``{{birth date|1815|12|10}}``: 10 December 1815, or the other way round where ``mf`` says so."""
    numbers = [value for value in values[:3] if re.fullmatch(r"\d{1,4}", value)]
    if not numbers:
        return _first(values, named)
    month = int(numbers[1]) if len(numbers) > 1 else 0
    if not 1 <= month <= 12:
        return numbers[0]
    if len(numbers) < 3:
        return f"{_MONTH_NAMES[month - 1]} {numbers[0]}"
    if named.get("mf", "").lower() in ("yes", "y"):
        return f"{_MONTH_NAMES[month - 1]} {int(numbers[2])}, {numbers[0]}"
    return f"{int(numbers[2])} {_MONTH_NAMES[month - 1]} {numbers[0]}"


def _convert(values: list[str], named: Mapping[str, str]) -> str:
    """``{{convert|12|km|mi}}``: the figure as it was written, without the one that would be worked out."""
    if len(values) > 3 and values[1] in ("-", "–", "to", "and", "x", "by", "or"):
        joint = values[1] if values[1] in "-–" else f" {values[1]} "
        return f"{values[0]}{joint}{values[2]} {_unit(values[3])}"
    return f"{values[0]} {_unit(values[1])}" if len(values) > 1 else _first(values, named)


def _unit(unit: str) -> str:
    return {"sqmi": "sq mi", "sqkm": "km²", "km2": "km²", "m2": "m²", "m3": "m³", "C": "°C", "F": "°F"}.get(unit, unit)


def _value(values: list[str], named: Mapping[str, str]) -> str:
    """``{{val|1.5|u=km}}``."""
    unit = named.get("u", named.get("ul", ""))
    error = f"±{values[1]}" if len(values) > 1 else ""
    power = f"×10^{named['e']}" if "e" in named else ""
    return f"{_first(values, named)}{error}{power} {unit}".strip()


def _fraction(values: list[str], named: Mapping[str, str]) -> str:
    if len(values) == 1:
        return f"1/{values[0]}"
    return "/".join(values) if len(values) < 3 else f"{values[0]} {values[1]}/{values[2]}"


def _before(text: str) -> Renderer:
    return lambda values, named: f"{text}{_first(values, named)}"


def _always(text: str) -> Renderer:
    return lambda values, named: text


def _table() -> dict[str, Renderer]:
    """Renderers by the templates' names, in lower case."""
    groups: dict[Renderer, str] = {
        _first: "nowrap|nobr|nobold|small|smaller|big|larger|em|strong|strongbad|abbr|tooltip|sic|not a typo|smallcaps|"
        "sc|math|mvar|nihongo|transl|transliteration|script|unicode|ipa|ipa-en|noitalic|italics correction|quote|"
        "blockquote|cquote|quotation|flag|flagcountry|flagu|no flag|flagicon text|sup|sub|code|mono|keypress|kbd|var|"
        "samp|tq|gloss|midsize|center|left|right|formatnum|age in years|number|nts|ntsh|sort name|text|1x|as written|"
        "no break|nbay|bold|huge|interlanguage link|ill|illm|respell|tlx|cleanup lang",
        _second: "lang|langx|color|colour|font color|fontcolor|wikt-lang|wt|hover title|sort|dts text|sclass|"
        "xt|script/hebrew",
        _last: "linktext|seealso text",
        _commas: "hlist|ubl|unbulleted list|unbulleted|flatlist text|enum|comma separated entries|cslist|pagelist",
        _lines: "bulleted list|blist|ordered list|olist",
        _listed: "plainlist|plain list|flatlist|collapsible text|br separated entries",
        _date: "birth date|birth-date|bda|birth date and age|birth year and age|death date|death-date|"
        "death date and age|start date|start date and age|end date|film date|date|dts|dob|launch date|birth year|"
        "death year|release date",
        _convert: "convert|cvt|cv",
        _value: "val|gaps",
        _fraction: "frac|sfrac|fraction|tfrac",
        _before("c. "): "circa|c.|c|ca",
        _before("£"): "gbp|£|pound sterling",
        _before("€"): "eur|euro",
        _before("US$"): "us$|usd",
        _before("¥"): "jpy|¥",
        _before("ISBN "): "isbn",
        _before("As of "): "as of",
        _before("r. "): "reign|r.",
        _before("fl. "): "floruit|fl.|fl",
        _always(" – "): "snd|spnd|spaced ndash|spaced en dash|dash",
        _always("–"): "ndash|en dash|nbnd",
        _always("—"): "mdash|em dash|emdash",
        _always(" "): "nbsp|space|spaces|thin space|thinsp|hair space|sp|pad",
        _always(" · "): "·|dot|middot|bullet|•|\\",
        _always("|"): "!|pipe",
        _always("="): "=",
        _always("''"): "'",
    }
    return {name: renderer for renderer, names in groups.items() for name in names.split("|")}


RENDERERS = {**_table(), "!": _always("|"), '-"': _always("'")}
