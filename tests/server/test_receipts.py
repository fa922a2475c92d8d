"""Receipts: what is signed, that nothing in it can be changed, and that no policy ever reads one."""

from __future__ import annotations

import asyncio
import base64
import copy
import hashlib
import json
import random
from collections.abc import Iterator, Mapping
from typing import Any

import pytest
from control_toys import Desk, desk, served
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
from hypothesis import given, settings
from hypothesis import strategies as st
from wire_toys import HOST_HEADERS, ask, legacy_call, modern_call, raw_headers

from mcpgym.control import Call, ControlPlane, LocalControl
from mcpgym.control_plane.codec import encode
from mcpgym.errors import ConfigurationError
from mcpgym.receipts import (
    ReceiptRejected,
    Signer,
    calls_hash,
    canonical,
    check_line,
    check_receipt,
    content_hash,
    receipt_line,
)
from mcpgym.signing_keys import PublicKey, SigningKey
from mcpgym.wire import player_app

TALK = [{"role": "user", "content": "Count."}, {"role": "assistant", "content": "2, please \ud83d \U0001f600"}]
CLAIMS = {"policy": "a \ud800 policy", "harness": "these tests"}


def new_key() -> SigningKey:
    private = Ed25519PrivateKey.generate()
    return SigningKey(PublicKey(private.public_key().public_bytes_raw()), private)


KEY = new_key()
KEYS = {KEY.public.id: KEY.public}


async def played(control: ControlPlane, *scorings: Any) -> tuple[str, list[Any]]:
    """An episode's token and its scores, after a few calls of many kinds."""
    token = (await control.open("desk", split="train", index=2, seed=-(2**70), config={"ceiling": 7.5})).token
    calls = [("add", {"number": 2}), ("add", {"number": -1}), ("nothing", {"\ud800": [1.0, "é"]}), ("n" * 300, {})]
    await control.step([Call(token, name, arguments) for name, arguments in calls])
    return token, [await control.score(token, **options) for options in scorings]


def signed(*scorings: Any) -> tuple[str, list[Any]]:
    return asyncio.run(played(LocalControl(desk(), signer=Signer(KEY)), *(scorings or [{}])))


def example() -> dict[str, Any]:
    """A receipt with everything in it."""
    _, (score,) = signed({"messages": TALK, "claims": CLAIMS})
    return json.loads(encode(score.receipt))


def test_nothing_is_signed_unless_there_is_a_signer() -> None:
    _, (score,) = asyncio.run(played(LocalControl(desk()), {"messages": TALK, "claims": CLAIMS}))
    assert score.receipt is None


def test_a_receipt_says_what_happened() -> None:
    token, (bare, whole) = signed({}, {"messages": TALK, "claims": CLAIMS})
    first, second = check_receipt(bare.receipt, KEYS).statement, check_receipt(whole.receipt, KEYS).statement
    assert (first["environment"], first["environment_version"], first["task"]) == ("desk", "7", "train-2")
    assert (first["split"], first["seed"], first["schema_hash"]) == ("train", -(2**70), Desk.schema_hash)
    assert first["config"] == {"size": 10, "ceiling": 7.5}
    assert first["config_hash"] == content_hash({"ceiling": 7.5, "size": 10})
    assert first["episode"] == hashlib.sha256(token.encode()).hexdigest()
    assert token not in json.dumps([bare.receipt, whole.receipt])
    assert (first["total"], first["components"], first["game_outcome"]) == (
        None,
        {"counted": 2.0, "polite": None},
        None,
    )
    assert (second["total"], second["components"]) == (2.5, {"counted": 2.0, "polite": 1.0})
    assert (first["transcript"], second["transcript"]) == (None, content_hash(TALK))
    assert (first["claims"], second["claims"]) == ({}, CLAIMS)
    assert first["clients"] == [{"lane": "control", "name": None, "version": None}]
    log = [
        ("add", {"number": 2}, "2", False),
        ("add", {"number": -1}, "only upwards: 0 or more", True),
    ]
    assert first["calls"]["count"] == 4
    assert first["calls"]["hash"] != calls_hash(log)
    assert first["opened"] < first["scored"] < second["scored"]


def test_scoring_again_gives_a_receipt_that_says_so() -> None:
    async def script() -> list[Mapping[str, Any]]:
        control = LocalControl(desk(), signer=Signer(KEY))
        token = (await control.open("desk", split="train", index=0)).token
        said = []
        for number in (1, 0, 3):
            await control.step([Call(token, "add", {"number": number})] if number else [])
            score = await control.score(token)
            said.append(check_receipt(score.receipt, KEYS).statement)
        return said

    said = asyncio.run(script())
    assert [item["scoring"] for item in said] == [1, 2, 3]
    assert [item["calls"]["count"] for item in said] == [1, 1, 2]
    assert [item["number"] for item in said] == [1, 2, 3]
    assert [item["opening"] for item in said] == [1, 1, 1]
    assert len({item["series"] for item in said}) == 1
    assert len({item["calls"]["hash"] for item in said}) == 2


def test_an_episode_that_cannot_be_scored_has_no_receipt_and_counts_no_scoring() -> None:
    async def script() -> Any:
        control = LocalControl(desk(), signer=Signer(KEY))
        token = (await control.open("desk", split="train", index=0)).token
        await control.step([Call(token, "add", {"number": 99})])  # the reward is then not finite
        with pytest.raises(Exception, match="counted"):
            await control.score(token)
        await control.step([Call(token, "add", {"number": 1})])
        return (await control.score(token)).receipt

    assert check_receipt(asyncio.run(script()), KEYS).statement["scoring"] == 1


def test_both_lanes_sign_the_same() -> None:
    own = {"series", "number", "episode", "opened", "scored"}

    async def over_http(*scorings: Any) -> list[Any]:
        async with served(desk(), signer=Signer(KEY)) as (_, control):
            return (await played(control, *scorings))[1]

    scorings = [{}, {"messages": TALK, "claims": CLAIMS}]
    _, local = signed(*scorings)
    remote = asyncio.run(over_http(*scorings))
    for here, there in zip(local, remote, strict=True):
        one, two = (dict(check_receipt(score.receipt, KEYS).statement) for score in (here, there))
        assert {name: one[name] for name in one.keys() - own} == {name: two[name] for name in two.keys() - own}
        assert one.keys() == two.keys()


@pytest.mark.parametrize(
    ("claims", "says"),
    [
        ({"policy": 1}, "claims.policy: a text"),
        ({"policy": "x" * 1001}, "at most 1000"),
        ({"Policy": "x"}, "'Policy' is no name"),
        ({"": "x"}, "is no name"),
        ({f"c{n}": "x" for n in range(17)}, "at most 16"),
        (["policy"], "claims: an object"),
    ],
)
def test_both_lanes_refuse_other_claims_alike(claims: Any, says: str) -> None:
    async def refused(control: ControlPlane) -> str:
        token = (await control.open("desk", split="train", index=0)).token
        with pytest.raises(ConfigurationError) as raised:
            await control.score(token, claims=claims)
        assert (await control.score(token)).components["counted"] == 0.0
        return str(raised.value)

    async def both() -> tuple[str, str]:
        async with served() as (_, control):
            return await refused(LocalControl(desk())), await refused(control)

    local, remote = asyncio.run(both())
    assert says in local
    assert remote == local


def test_anybody_can_check_a_receipt_with_what_the_documentation_says() -> None:
    receipt = example()
    text = json.dumps(receipt["receipt"], sort_keys=True, separators=(",", ":"), ensure_ascii=True)
    private = Ed25519PrivateKey.generate()
    KEY._private.public_key().verify(base64.b64decode(receipt["signature"]), text.encode())
    with pytest.raises(Exception):  # noqa: B017, PT011
        private.public_key().verify(base64.b64decode(receipt["signature"]), text.encode())


# -- tampering --------------------------------------------------------------------------------------------------------


def others(value: Any) -> list[Any]:
    """Values that are not ``value``, some of them nearly."""
    if isinstance(value, bool):
        return [not value, int(value), None]
    if isinstance(value, int):
        return [value + 1, float(value) + 0.5, str(value), None, *([bool(value)] if value in (0, 1) else [])]
    if isinstance(value, float):
        return [value + 2**-40, -value or 1.0, *([int(value)] if value.is_integer() else []), str(value), None]
    if isinstance(value, str):
        return [value + " ", value.upper() + "!", value[:-1] + "é", "", None, [value]] if value else ["a", None]
    if value is None:
        return [0, "", False, {}]
    if isinstance(value, list):
        return [[*value, None], value[:-1] if value else ["x"], {}, None]
    return [{**value, "more": 1}, None, []]


def changed(value: Any) -> Iterator[Any]:
    """``value`` with one thing changed, added, taken away or renamed, wherever it is."""
    yield from others(value)
    if isinstance(value, dict):
        for name in value:
            for other in changed(value[name]):
                yield {**value, name: other}
            yield {key: item for key, item in value.items() if key != name}
            yield {(key if key != name else f"{key}_"): item for key, item in value.items()}
    if isinstance(value, list):
        for place in range(len(value)):
            for other in changed(value[place]):
                yield [*value[:place], other, *value[place + 1 :]]


def test_a_receipt_with_any_one_thing_changed_is_rejected() -> None:
    receipt = example()
    check_receipt(copy.deepcopy(receipt), KEYS)
    count = 0
    for other in changed(receipt):
        assert canonical(other) != canonical(receipt)
        with pytest.raises(ReceiptRejected):
            check_receipt(other, KEYS)
        with pytest.raises(ReceiptRejected):
            check_line(canonical(other), KEYS)
        count += 1
    assert count > 200


def test_every_flip_of_a_byte_of_a_line_is_rejected() -> None:
    line = receipt_line(example())
    check_line(line, KEYS)
    numbers = random.Random(7)
    for _ in range(1_000):
        place, flip = numbers.randrange(len(line)), numbers.randrange(1, 256)
        with pytest.raises(ReceiptRejected):
            check_line(line[:place] + bytes([line[place] ^ flip]) + line[place + 1 :], KEYS)
    for place in range(len(line)):  # every byte once, by its lowest bit; and cut, doubled, left out
        for other in (line[:place] + bytes([line[place] ^ 1]) + line[place + 1 :], line[:place]):
            with pytest.raises(ReceiptRejected):
                check_line(other, KEYS)


@pytest.mark.parametrize(
    "change",
    [
        lambda line: line + b" ",
        lambda line: b" " + line,
        lambda line: line + b"\r",
        lambda line: line.replace(b'":', b'": ', 1),
        lambda line: json.dumps(json.loads(line)).encode(),
        lambda line: line.replace(b'{"key"', b'{"key":"","key"', 1),  # twice: readers disagree on which one counts
        lambda line: line.replace(b"train-2", b"\\u0074rain-2"),
        lambda line: line.replace(b"==", b"=="[:1]),
        lambda line: line.replace(b'=="', b'==\\n"'),
        lambda line: b"\xef\xbb\xbf" + line,
    ],
)
def test_a_line_that_means_the_same_and_is_written_otherwise_is_rejected(change: Any) -> None:
    line = receipt_line(example())
    assert change(line) != line
    with pytest.raises(ReceiptRejected):
        check_line(change(line), KEYS)


def test_a_signature_is_written_in_one_way_only() -> None:
    """64 bytes in base64 leave four bits of the last character unused."""
    receipt = example()
    alphabet = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/"
    last = alphabet.index(receipt["signature"][-3])
    for unused in range(1, 16):
        twin = receipt["signature"][:-3] + alphabet[last ^ unused] + "=="
        if base64.b64decode(twin) == base64.b64decode(receipt["signature"]):
            break
    else:
        pytest.fail("no twin found")
    with pytest.raises(ReceiptRejected, match="base64"):
        check_receipt({**receipt, "signature": twin}, KEYS)
    order = 2**252 + 27742317777372353535851937790883648493
    raw = base64.b64decode(receipt["signature"])
    malleable = raw[:32] + (int.from_bytes(raw[32:], "little") + order).to_bytes(32, "little")
    with pytest.raises(ReceiptRejected):
        check_receipt({**receipt, "signature": base64.b64encode(malleable).decode()}, KEYS)


def test_only_the_keys_that_are_given_count() -> None:
    receipt, other = example(), new_key().public
    with pytest.raises(ReceiptRejected, match=f"none of those given: {other.id}"):
        check_receipt(receipt, {other.id: other})
    forged = {**receipt, "key": other.id}
    with pytest.raises(ReceiptRejected, match="did not sign"):
        check_receipt(forged, {other.id: other, **KEYS})
    check_receipt(receipt, {other.id: other, **KEYS})


@pytest.mark.parametrize("name", sorted(example()["receipt"]))
def test_what_a_key_signed_must_still_be_a_receipt(name: str) -> None:
    def sign(statement: dict[str, Any]) -> dict[str, Any]:
        signature = base64.b64encode(KEY.sign(canonical(statement))).decode()
        return {"receipt": statement, "key": KEY.public.id, "signature": signature}

    statement = example()["receipt"]
    check_receipt(sign(statement), KEYS)
    for odd in ({**statement, name: True}, {key: value for key, value in statement.items() if key != name}):
        with pytest.raises(ReceiptRejected):
            check_receipt(sign(odd), KEYS)


@pytest.mark.parametrize("number", [1e308, -(10**400)])
@pytest.mark.parametrize("name", ["total", "components"])
def test_a_score_that_nobody_could_average_is_rejected(name: str, number: float) -> None:
    statement = example()["receipt"]
    statement[name] = number if name == "total" else {"counted": number}
    signature = base64.b64encode(KEY.sign(canonical(statement))).decode()
    with pytest.raises(ReceiptRejected, match="beyond 1e"):
        check_receipt({"receipt": statement, "key": KEY.public.id, "signature": signature}, KEYS)


@pytest.mark.parametrize("value", [None, [], "x", {}, {"receipt": {}, "key": "", "signature": ""}, {"receipt": []}])
def test_what_is_no_receipt_is_rejected_in_words(value: Any) -> None:
    with pytest.raises(ReceiptRejected, match=r"no receipt|schema"):
        check_receipt(value, KEYS)


def test_a_line_nested_beyond_reading_is_rejected() -> None:
    deep = b'{"key":' + b"[" * 100_000 + b"]" * 100_000 + b"}"
    with pytest.raises(ReceiptRejected):
        check_line(deep, KEYS)


json_values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(), inner, max_size=3),
    max_leaves=8,
)


@settings(max_examples=100, deadline=None)
@given(json_values)
def test_the_canonical_text_of_a_value_is_one_whatever_json_it_went_through(value: Any) -> None:
    text = canonical(value)
    assert text.isascii()
    assert canonical(json.loads(text)) == text
    assert canonical(json.loads(json.dumps(value, ensure_ascii=False, indent=2))) == text


def test_calls_are_hashed_as_a_server_logs_them() -> None:
    deep: Any = {}
    for _ in range(80):
        deep = {"a": deep}
    assert calls_hash([("n" * 300, deep, "text", True)]) == calls_hash([("n" * 100, {}, "text", True)])
    assert calls_hash([("a", {"x": 1}, "t", True)]) != calls_hash([("a", {"x": 1.0}, "t", True)])
    assert calls_hash([("a", {}, "t", True)]) != calls_hash([("a", {}, "t", False)])


# -- who played, and what a player sees -----------------------------------------------------------------------------


def test_a_receipt_names_the_clients_that_the_server_saw() -> None:
    async def script() -> list[Any]:
        episodes = desk()
        control = LocalControl(episodes, signer=Signer(KEY))
        app, slow = player_app(episodes), player_app(episodes, fast_lane=False)
        seen = []
        async with app.running(), slow.running():
            for lane in ("fast", "sdk", "legacy", "nobody", "odd"):
                token = (await control.open("desk", split="train", index=0)).token
                url = f"/e/{token}/mcp"
                if lane == "legacy":
                    hello = {"protocolVersion": "2025-11-25", "capabilities": {}}
                    hello["clientInfo"] = {"name": "old client \ud800" + "x" * 200, "version": "1"}
                    request = {"jsonrpc": "2.0", "id": 0, "method": "initialize", "params": hello}
                    headers, _ = legacy_call("log")
                    await ask(app, url, raw_headers(HOST_HEADERS | headers), json.dumps(request).encode())
                if lane in ("legacy", "nobody"):
                    headers, body = legacy_call("log")
                else:
                    headers, body = modern_call("log")
                    if lane == "odd":
                        body["params"]["_meta"]["io.modelcontextprotocol/clientInfo"] = {"name": [], "version": {}}
                for _ in range(2):
                    await ask(
                        slow if lane == "sdk" else app,
                        url,
                        raw_headers(HOST_HEADERS | headers),
                        json.dumps(body).encode(),
                    )
                score = await control.score(token)
                seen.append(check_receipt(score.receipt, KEYS).statement["clients"])
        return seen

    fast, sdk, legacy, nobody, odd = asyncio.run(script())
    assert len(fast) == 1
    assert fast[0]["lane"] == "mcp"
    assert fast[0]["name"]
    assert fast == sdk
    assert [row["lane"] for row in legacy] == ["mcp"]
    assert legacy[0]["name"].startswith("old client \\ud800xxx")
    assert len(legacy[0]["name"]) < 130
    assert nobody == [{"lane": "mcp", "name": None, "version": None}]
    assert odd in ([], nobody)  # the SDK refuses a client of that kind


def test_no_more_than_a_few_clients_are_kept() -> None:
    async def script() -> list[Any]:
        episodes = desk()
        episode = await episodes.open("desk", split="train", index=0)
        for number in range(100):
            episode.saw(f"client {number}", [number])
        episode.by_control = True
        return episode.seen()

    assert len(asyncio.run(script())) == 9


def test_nothing_of_a_receipt_reaches_a_player() -> None:
    async def script() -> tuple[bytes, Mapping[str, Any]]:
        episodes = desk()
        control = LocalControl(episodes, signer=Signer(KEY))
        app = player_app(episodes)
        answers = []
        async with app.running():
            token = (await control.open("desk", split="train", index=0)).token

            async def talk() -> None:
                for make in (modern_call, legacy_call):
                    for name in ("log", "receipt", "score", "add"):
                        headers, body = make(name, {"number": 1} if name == "add" else {})
                        found = await ask(
                            app, f"/e/{token}/mcp", raw_headers(HOST_HEADERS | headers), json.dumps(body).encode()
                        )
                        answers.append(repr(found).encode())
                    body["method"], body["params"] = "tools/list", body["params"] | {"name": "log"}
                    found = await ask(
                        app, f"/e/{token}/mcp", raw_headers(HOST_HEADERS | headers), json.dumps(body).encode()
                    )
                    answers.append(repr(found).encode())

            await talk()
            receipt = (await control.score(token, TALK, claims=CLAIMS)).receipt
            assert receipt is not None
            await talk()
            await control.close(token)
            await talk()
        return b"".join(answers), receipt

    said, receipt = asyncio.run(script())
    assert b"number" in said
    assert b"ended" in said
    statement = receipt["receipt"]
    hidden = [receipt["signature"], receipt["key"], statement["series"], statement["episode"], statement["config_hash"]]
    for text in [*hidden, statement["calls"]["hash"], "mcpgym.receipt", "these tests"]:
        assert text.encode() not in said
