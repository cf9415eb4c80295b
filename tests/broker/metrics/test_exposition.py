"""The account as a scrape reads it, by the parser of those who define the format."""

import msgspec
from prometheus_client.parser import text_string_to_metric_families

from broker.metrics import Histogram, MetricsLedger
from broker.metrics.exposition import exposition
from broker.metrics.ledger import FAMILIES


def scraped(ledger):
    render, _ = exposition(lambda: ledger, "1")
    return {one.name: one for one in text_string_to_metric_families(render().decode())}


def test_each_counter_of_the_account_is_one_metric_of_its_kind():
    families = scraped(MetricsLedger())
    assert {row.field for row in FAMILIES} == {
        one.name for one in msgspec.structs.fields(MetricsLedger)
    }
    assert {row.name: row.kind for row in FAMILIES}.items() <= {
        name: one.type for name, one in families.items()
    }.items()


def test_a_histogram_is_told_with_cumulative_buckets_sum_and_count():
    """By these names `histogram_quantile` reads it."""
    latency_s = Histogram()
    for value in (0.03, 0.04, 900.0):
        latency_s.observe(value)
    samples = {
        (one.name.rpartition("_seconds")[2], one.labels.get("le")): one.value
        for one in scraped(MetricsLedger(detection_s=latency_s))[
            "headwater_detection_latency_seconds"
        ].samples
    }
    assert samples["_bucket", "0.02"] == 0
    assert samples["_bucket", "0.05"] == 2
    assert samples["_bucket", "60.0"] == 2
    assert samples["_bucket", "+Inf"] == samples["_count", None] == 3
    assert samples["_sum", None] == 900.07


def test_a_metric_of_two_labels_has_a_value_for_each_pair():
    lags = {("pi3", "anna/Warm"): 4.5, ("pi4", "anna/Warm"): 0.25}
    (first, second) = scraped(MetricsLedger(lag_s=lags))["headwater_lag_seconds"].samples
    assert first.labels == {"origin": "pi3", "task": "anna/Warm"}
    assert (first.value, second.value) == (4.5, 0.25)
