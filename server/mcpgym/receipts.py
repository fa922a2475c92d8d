"""Receipts: what a server signs of a score, and how anybody checks it with the server's public key.

A receipt is ``{"receipt": STATEMENT, "key": ID, "signature": BASE64}``. The signed bytes are the statement's canonical
JSON: ASCII, keys sorted, no spaces. docs/receipts.md has the whole form, so that others can check it without us.

Receipts travel on the control plane alone. What they say of an episode is a hash of its token, never the token.
"""

from __future__ import annotations

import base64
import binascii
import hashlib
import json
import math
import re
import secrets
import time
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

from mcpgym.calls import too_deep
from mcpgym.errors import ConfigurationError, McpgymError
from mcpgym.rewards import LARGEST
from mcpgym.signing_keys import PublicKey, SigningKey

if TYPE_CHECKING:
    from mcpgym.episode import Episode
    from mcpgym.rewards import Score

SCHEMA = "mcpgym.receipt/1"
MAX_CLAIMS = 16
MAX_CLAIM = 1_000
"""Characters a claim may have."""

LoggedCall = tuple[str, Any, str, bool]
"""A call as the server logged it: name, arguments, the text of its answer, whether that was an error."""

_CLAIM_NAME = re.compile(r"[a-z][a-z0-9_]{0,39}")
_number = (int, float)
_FIELDS: dict[str, type | tuple[type, ...]] = {
    **dict.fromkeys(("schema", "key", "mcpgym", "episode", "environment", "environment_version", "task"), str),
    **dict.fromkeys(("split", "config_hash", "schema_hash", "opened", "scored", "series"), str),
    **dict.fromkeys(("seed", "number", "opening", "scoring"), int),
    **dict.fromkeys(("config", "calls", "components", "claims"), dict),
    "clients": list,
    "transcript": (str, type(None)),
    "total": (*_number, type(None)),
    "game_outcome": (str, type(None)),
}


class ReceiptRejected(McpgymError):
    """A receipt that is not to be believed; the text says why."""


def canonical(value: Any) -> bytes:
    """The one JSON text of ``value``: ASCII, keys sorted, no spaces. What JSON has no form for is its ``repr``, and a
    number that is not finite null, as in traces."""
    try:
        return _dumps(value).encode("ascii")
    except (TypeError, ValueError):
        return _dumps(_plain(value)).encode("ascii")


def content_hash(value: Any) -> str:
    """SHA-256 of the canonical JSON of ``value``, in hexadecimal; of ``"too deep"`` where it is nested beyond reading.

    Not :func:`mcpgym.schema.content_hash`, for which 1 and 1.0 are one: here every digit counts.
    """
    try:
        return hashlib.sha256(canonical(value)).hexdigest()
    except RecursionError:
        return hashlib.sha256(b'"too deep"').hexdigest()


def calls_hash(calls: Iterable[LoggedCall]) -> str:
    """The hash of a call log: of the list of ``[name, arguments, text, is_error]``.

    Arguments and names count as a server logs them: the first 100 characters of a name, and ``{}`` for arguments that
    are nested too deeply to be read.
    """
    logged = [[name[:100], {} if too_deep(given) else given, text, error] for name, given, text, error in calls]
    return content_hash(logged)


def checked_claims(claims: Mapping[str, Any] | None) -> dict[str, str]:
    """What a harness says of itself, if it may stand in a receipt.

    Raises:
        ConfigurationError: it is no mapping of a few short names to short texts.
    """
    if claims is None:
        return {}
    if not isinstance(claims, Mapping) or len(claims) > MAX_CLAIMS:
        raise ConfigurationError(f"claims: an object of at most {MAX_CLAIMS} names and texts")
    for name, value in claims.items():
        if not isinstance(name, str) or not _CLAIM_NAME.fullmatch(name):
            raise ConfigurationError(f"claims: {str(name)[:60]!r} is no name of a claim; write it as in `my_harness`")
        if not isinstance(value, str) or len(value) > MAX_CLAIM:
            raise ConfigurationError(f"claims.{name}: a text of at most {MAX_CLAIM} characters")
    return dict(claims)


class Signer:
    """Signs the scores of one server process.

    Its receipts are numbered from 1 in a ``series`` of its own, and each says how many episodes the server had opened
    with its own: of a series that was passed on with gaps, something was kept back, or was never scored.

    Args:
        key: what it signs with.
    """

    def __init__(self, key: SigningKey) -> None:
        from mcpgym import __version__

        self.key = key
        self._version = __version__
        self._series = secrets.token_hex(8)
        self._signed = 0

    def receipt(
        self,
        episode: Episode,
        score: Score,
        transcript: Sequence[Mapping[str, Any]] | None = None,
        claims: Mapping[str, str] | None = None,
    ) -> dict[str, Any]:
        """The receipt of an episode's score, as things stand.

        Args:
            episode: what was scored; its call log must still be that of the scoring.
            score: its score.
            transcript: the messages that the harness handed over, if any.
            claims: what the harness says of itself.
        """
        self._signed += 1
        made = episode.environment
        config = json.loads(canonical(made.config.model_dump(mode="json")))
        statement = {
            "schema": SCHEMA,
            "key": self.key.public.id,
            "mcpgym": self._version,
            "series": self._series,
            "number": self._signed,
            "opening": episode.opening,
            "episode": hashlib.sha256(episode.token.encode()).hexdigest(),
            "environment": made.name,
            "environment_version": made.version,
            "config": config,
            "config_hash": content_hash(config),
            "schema_hash": made.schema_hash,
            "task": episode.task.id,
            "split": episode.task.split,
            "seed": episode.seed,
            "calls": {
                "count": len(episode.calls),
                "hash": calls_hash((call.name, call.arguments, call.text, call.is_error) for call in episode.calls),
            },
            "transcript": None if transcript is None else content_hash(list(transcript)),
            "components": dict(score.components),
            "total": score.total,
            "game_outcome": score.game_outcome,
            "scoring": episode.scorings,
            "opened": moment(episode.opened),
            "scored": moment(time.time()),
            "clients": episode.seen(),
            "claims": checked_claims(claims),
        }
        if episode.conditions:
            statement["conditions"] = dict(episode.conditions)
        signature = base64.b64encode(self.key.sign(canonical(statement))).decode()
        return {"receipt": statement, "key": self.key.public.id, "signature": signature}


@dataclass(frozen=True, slots=True)
class Receipt:
    """A receipt that was checked: ``statement`` is what it says, and ``signature`` what makes it true."""

    statement: Mapping[str, Any]
    key: str
    signature: str


def receipt_line(receipt: Any) -> bytes:
    """A receipt as it stands in a file, without the newline."""
    return canonical(receipt)


def check_receipt(value: Any, keys: Mapping[str, PublicKey]) -> Receipt:
    """The receipt that ``value`` is.

    Args:
        value: what was read as JSON.
        keys: those whose signature counts, by their id.

    Raises:
        ReceiptRejected: it is none, or none of these keys signed exactly this.
    """
    if not isinstance(value, dict) or value.keys() != {"receipt", "key", "signature"}:
        raise ReceiptRejected("it is no receipt, which has receipt, key and signature and nothing else")
    statement, key, signature = value["receipt"], value["key"], value["signature"]
    if not isinstance(statement, dict) or not isinstance(key, str) or not isinstance(signature, str):
        raise ReceiptRejected("it is no receipt: receipt is an object, key and signature are texts")
    if (schema := statement.get("schema")) != SCHEMA:
        raise ReceiptRejected(f"its schema is {str(schema)[:60]!r}; this version reads {SCHEMA!r}")
    if key not in keys:
        raise ReceiptRejected(f"it names the key {key[:40]!r}, which is none of those given: {', '.join(keys)}")
    try:
        signed = keys[key].signed(_signature(signature), canonical(statement))
    except RecursionError:
        raise ReceiptRejected("it is nested too deeply to be a receipt") from None
    if not signed:
        raise ReceiptRejected(f"key {key} did not sign this: something in it was changed")
    _refuse_odd(statement, key)
    return Receipt(statement, key, signature)


def check_line(line: bytes, keys: Mapping[str, PublicKey]) -> Receipt:
    """The receipt in a line of a file, without its newline: in every byte as it was written.

    Raises:
        ReceiptRejected: as :func:`check_receipt`, or the line is not written as receipts are.
    """
    try:
        value = json.loads(line.decode("ascii"))
        written = receipt_line(value)
    except (ValueError, RecursionError) as error:
        raise ReceiptRejected(f"it is no JSON in ASCII: {str(error)[:100]}") from None
    checked = check_receipt(value, keys)
    if written != line:
        raise ReceiptRejected("it is not written as receipts are: sorted keys, no spaces, nothing twice")
    return checked


def moment(seconds: float) -> str:
    """A time since the epoch as text: ISO 8601, UTC, microseconds."""
    return datetime.fromtimestamp(seconds, UTC).strftime("%Y-%m-%dT%H:%M:%S.%fZ")


def _signature(text: str) -> bytes:
    """The 64 bytes of a signature, which base64 writes in one way only.

    Raises:
        ReceiptRejected: they are not.
    """
    try:
        raw = base64.b64decode(text.encode("ascii"), validate=True)
    except (binascii.Error, ValueError):
        raw = b""
    if len(raw) != 64 or base64.b64encode(raw).decode() != text:
        raise ReceiptRejected("its signature is not 64 bytes in base64")
    return raw


def _refuse_odd(statement: Mapping[str, Any], key: str) -> None:
    """What a key signed and no server of ours would write."""
    for name, kind in _FIELDS.items():
        value = statement.get(name)
        if name not in statement or not isinstance(value, kind) or isinstance(value, bool):
            raise ReceiptRejected(f"{name!r} is missing or of the wrong kind, though its key signed it")
    if not isinstance(statement.get("conditions", {}), dict):
        raise ReceiptRejected("'conditions' is of the wrong kind, though its key signed it")
    for name, value in statement["components"].items():
        if isinstance(value, bool) or not isinstance(value, (*_number, type(None))):
            raise ReceiptRejected(f"the component {name[:60]!r} is no number, though its key signed it")
    for value in (statement["total"], *statement["components"].values()):
        if value is not None and not abs(value) <= LARGEST:
            raise ReceiptRejected(f"a number in its score is beyond {LARGEST:g}, though its key signed it")
    if statement["key"] != key:
        raise ReceiptRejected(f"it says inside that {statement['key'][:40]!r} signed it, and outside {key}")
    if statement["config_hash"] != content_hash(statement["config"]):
        raise ReceiptRejected("its config is not the one whose hash it gives")


def _dumps(value: Any) -> str:
    return json.dumps(value, sort_keys=True, separators=(",", ":"), allow_nan=False, default=_odd)


def _odd(value: Any) -> Any:
    if isinstance(value, Mapping):
        return dict(value)
    if isinstance(value, Sequence) and not isinstance(value, bytes):
        return list(value)
    return repr(value)


def _plain(value: Any) -> Any:
    if isinstance(value, float):
        return value if math.isfinite(value) else None
    if isinstance(value, (str, int, type(None))):
        return value
    if isinstance(value, Mapping):
        return {str(key): _plain(item) for key, item in value.items()}
    if isinstance(value, Sequence) and not isinstance(value, bytes):
        return [_plain(item) for item in value]
    return repr(value)
