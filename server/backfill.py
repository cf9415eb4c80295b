"""Whether a history holds what a job begins with.

Owns what can be told of histories before a job runs. Must not know Spark, nor rows. Invariant: what
is refused here would begin with less than the job wants, without a word.
"""

from collections.abc import Iterator

from server.checkpoint import version_apart
from server.config import ConfigPart, Jobs
from server.errors import ServerError
from server.history import files_of, subscriptions_in


def history_of(jobs: Jobs, job: ConfigPart) -> ConfigPart | None:
    """Return the source of kind `history` that a job reads or begins with."""
    source = jobs.sources[job["source"]]
    if source.kind == "history":
        return source
    return None if job["backfill"] is None else jobs.sources[job["backfill"]]


def unfit_histories(jobs: Jobs) -> list[str]:
    """Return a sentence for each history that does not hold what a job wants of it."""
    return [f"jobs.{job.name}.{fault}" for job in jobs.jobs.values() for fault in _unfit(jobs, job)]


def _unfit(jobs: Jobs, job: ConfigPart) -> Iterator[str]:
    source = history_of(jobs, job)
    if source is None or source.kind != "history":
        return
    key = "source" if job["backfill"] is None else "backfill"
    folder = jobs.path(source["path"])
    makers = [
        name for name, sink in jobs.sinks.items()
        if sink.kind == "parquet" and jobs.path(sink["path"]).absolute() == folder.absolute()
    ]  # fmt: skip
    # A version that is filled beside another has a folder of its own.
    if any(name in makers for name in job["sink"]) and not version_apart(jobs, job):
        yield f"sink: {folder} is what the job reads; name another folder"
    try:
        files_of(folder)
    except ServerError as error:
        if not makers:  # else it is made by a job of this file
            yield f"{key}: {error}"
        return
    kept = subscriptions_in(folder)
    wanted = {job[side]["subscription"] for side in ("left", "right")} if job.kind == "join" else (
        set(job["subscriptions"])
    )  # fmt: skip
    if kept and (not wanted or not wanted <= kept):
        missing = ", ".join(sorted(wanted - kept)) or "all subscriptions"
        yield (
            f"{key}: {folder} holds {', '.join(sorted(kept))} alone, and the job wants {missing}:"
            f" name some of these as `subscriptions`"
        )
