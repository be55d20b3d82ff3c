"""``verify`` compares what a record says of a key with its lock and with the log of its calls."""

from __future__ import annotations

from pathlib import Path

import pytest

from referee.adapters.store.evidence import LocalEvidence
from referee.core.canonical import canonical_bytes
from referee.core.records import AttemptEnded, AttemptPlanned, RecordingFacts
from referee.core.spending import Exchange, Price, SpendingFacts, Usage
from referee.errors import Finding
from referee.runner.spending_agreement import check_spending
from tests.test_store_records import ended, planned

RUN = "r-spent"
SPENDING = SpendingFacts(
    broker="gateway",
    key="gateway-1",
    model="m",
    cap_usd=3.0,
    spent_usd=0.3,
    calls=2,
    refused=1,
    capped=True,
    deleted=True,
    how="so",
)
RECORDING = RecordingFacts(complete=True, bytes=1, events=1, seconds=1.0, exit_status=0)


#: What one token in and one out cost: 0.1 and 0.2 US dollars.
DEAR = Price(input=1e5, output=2e5, source="this test")


def call(cost: float, refused: str | None = None, **changed: object) -> bytes:
    exchange = Exchange(
        at="2026-11-30T00:00:00Z",
        dialect="openai-chat",
        path="/v1/chat/completions",
        model="m",
        streamed=False,
        status=200,
        upstream_status=200,
        refused=refused,
        broke=None,
        usage=Usage(input=1, output=1),
        upper_usd=cost,
        cost_usd=cost,
        first_byte_ms=None,
        latency_ms=1.0,
    )
    exchange = exchange.model_copy(update=changed)
    return canonical_bytes(exchange.model_dump(mode="json")) + b"\n"


LOG = call(0.1) + call(0.2) + call(0.0, "cap")


def with_key() -> AttemptPlanned:
    plan = planned(RUN)
    agent = plan.lock.agent.model_copy(update={"cap_usd": 3.0, "model": "m"})
    return plan.model_copy(update={"lock": plan.lock.model_copy(update={"agent": agent})})


def check(directory: Path, *, log: bytes = LOG, plan: AttemptPlanned | None = None, **changed: object) -> None:
    evidence = LocalEvidence(directory)
    ref = evidence.keep("exchanges.jsonl", log)
    said = {"spending": SPENDING, "spent_usd": 0.3, "recording": RECORDING, "evidence": (ref,), **changed}
    end: AttemptEnded = ended(RUN).model_copy(update=said)
    check_spending(plan or with_key(), end, evidence)


def test_a_record_that_agrees_with_its_log_holds(tmp_path: Path) -> None:
    check(tmp_path)
    check(tmp_path, spending=None, recording=None, spent_usd=0.0)  # its key could not be made
    check(tmp_path, plan=planned(RUN), spending=None, spent_usd=0.0)


@pytest.mark.parametrize(
    ("changed", "said"),
    [
        ({"spent_usd": 0.1}, "two different sums"),
        ({"spending": SPENDING.model_copy(update={"spent_usd": 0.2}), "spent_usd": 0.2}, "by their log"),
        ({"spending": SPENDING.model_copy(update={"refused": 0})}, "calls refused: 1 by the log"),
        ({"spending": SPENDING.model_copy(update={"cap_usd": 30.0})}, "another cap"),
        ({"spending": SPENDING.model_copy(update={"model": "n"})}, "another cap or model"),
        ({"spending": None, "spent_usd": 0.0}, "tells nothing of it"),
        ({"log": LOG + b"{}\n"}, "no call"),
        ({"log": LOG + call(1.0)}, "by their log"),
        ({"spending": SPENDING.model_copy(update={"calls": 3})}, "went up: 2 by the log"),
        ({"spending": SPENDING.model_copy(update={"capped": False})}, "refused for its cap: True by the log"),
        ({"spending": SPENDING.model_copy(update={"ended_by_upstream": True})}, "ended by its upstream: False"),
        ({"spending": SPENDING.model_copy(update={"failed_upstream": 1})}, "upstream failed: 0 by the log"),
        ({"spending": SPENDING.model_copy(update={"input_tokens": 5})}, "input tokens: 2 by the log"),
        ({"spending": SPENDING.model_copy(update={"output_tokens": 5})}, "output tokens: 2 by the log"),
        ({"log": call(0.1, price=DEAR) + call(0.2) + call(0.0, "cap")}, "call 1 of its log cost 0.1.* 0.3"),
        ({"log": call(0.1, usage=None, upper_usd=0.2) + call(0.2) + call(0.0, "cap")}, "call 1 of its log cost 0.1"),
    ],
)
def test_what_does_not_agree_is_found(tmp_path: Path, changed: dict[str, object], said: str) -> None:
    with pytest.raises(Finding, match=said):
        check(tmp_path, **changed)  # type: ignore[arg-type]
