"""What Spark SQL knows of a file of jobs: each name is of one thing."""

import pytest

from server.catalogue import name_views
from server.errors import ServerError

JOBS = """
[sources.region]
brokers = {{ north = "http://127.0.0.1:1" }}

[jobs.{job}]
kind = "history"
source = "region"
sink = {sinks}

[sinks.archive]
kind = "parquet"
path = "archive"

[sinks.other]
kind = "parquet"
path = "other"
"""


@pytest.mark.parametrize(
    ("job", "sinks", "owners"),
    [
        ("region", '"archive"', "sources.region and of jobs.region with sink archive"),
        ("Region", '"archive"', "sources.region and of jobs.Region with sink archive"),
        (
            "history",
            '["archive", "other"]',
            "jobs.history with sink archive and of jobs.history with sink other",
        ),
    ],
)
def test_a_name_that_would_stand_for_two_is_refused(tmp_path, job, sinks, owners):
    (tmp_path / "jobs.toml").write_text(JOBS.format(job=job, sinks=sinks))
    with pytest.raises(ServerError, match=owners):
        name_views(None, tmp_path / "jobs.toml")
