"""Sums of what models cost, and the words in which they are shown."""

from __future__ import annotations

from referee.core.spending import SpendingFacts
from referee.publish.spent import spent_document, spent_words, sum_words
from referee.scoring.money import Bill, Spent, add_up
from tests.test_store_records import ended, found

FACTS = SpendingFacts(
    broker="gateway",
    key="gateway-1",
    model="maker-model-1",
    cap_usd=3.0,
    spent_usd=0.4213,
    calls=12,
    refused=0,
    failed_upstream=0,
    input_tokens=45_000,
    cached_tokens=30_000,
    output_tokens=1_200,
    deleted=True,
    how="so",
)


def test_all_attempts_cost_and_only_counted_ones_have_a_middle() -> None:
    bills = [Bill(1.0, True, False), Bill(3.0, True, True), Bill(0.5, False, False), Bill(None, True, False)]
    assert add_up(bills) == Spent(attempts=4, total_usd=4.5, median_usd=2.0, unknown=1, capped=1)
    assert add_up([Bill(0.5, False, False)]) == Spent(1, 0.5, None, 0, 0)
    assert add_up([]) is None


def test_a_sum_in_words() -> None:
    assert sum_words(Spent(4, 4.5, 2.0, 1, 1)) == (
        "4.50 USD in 4 attempts, invalid ones included; 2.00 USD in the middle one of those that count; "
        "1 attempt reached the cap of the key; not known of 1 attempt"
    )


def test_what_a_run_spent_in_words() -> None:
    run = ended("r-1").model_copy(update={"spending": FACTS, "spent_usd": 0.4213})
    assert spent_words(run) == (
        "0.42 USD of its key's cap of 3.00 USD, in 12 calls (45,000 tokens in, 30,000 of them cached, 1,200 out)"
    )
    capped = FACTS.model_copy(update={"capped": True, "failed_upstream": 2, "deleted": False, "spent_usd": 0.00001})
    said = spent_words(run.model_copy(update={"spending": capped}))
    assert said.startswith("less than 0.0001 USD of its key's cap")
    assert "2 of which the model's server failed" in said
    assert "the cap is one of the conditions" in said
    assert said.endswith("the key is not confirmed to be deleted")
    unknown = FACTS.model_copy(update={"spent_usd": None, "calls": None})
    assert "could not tell of its key's cap" in spent_words(run.model_copy(update={"spending": unknown}))
    assert spent_words(ended("r-1")) == "0.00 USD"
    assert spent_words(found("r-1")) == spent_words(None) == "not recorded"


def test_the_public_figures_name_no_maker() -> None:
    shown = spent_document(ended("r-1").model_copy(update={"spending": FACTS}))
    assert shown is not None
    assert shown["input_tokens"] == 45_000
    assert "maker" not in str(shown)
    assert "gateway" not in str(shown)
    assert spent_document(ended("r-1")) is None
