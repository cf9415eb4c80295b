"""Files of jobs: what is taken, and that every fault of a file is told at once."""

import json

import pytest

from server.checkpoint import NOTHING, JobMeaning, checkpoint, claim, claimed, fingerprint
from server.config import duration_ms, read
from server.errors import JobsError
from server.process import check, run, streams_of

GOOD = """
[server]
name = "valley"
[sources.region]
brokers = { b1 = "http://127.0.0.1:8080", b2 = "http://127.0.0.1:8081" }
[jobs.history]
kind = "history"
source = "region"
sink = ["archive", "db"]
[jobs.hours]
kind = "windows"
source = "region"
window = "1 h"
sink = "db"
[sinks.archive]
kind = "parquet"
path = "history"
[sinks.db]
kind = "database"
url = "sqlite:///out.db"
"""


@pytest.fixture
def file(tmp_path):
    def write(text=GOOD):
        path = tmp_path / "jobs.toml"
        path.write_text(text)
        return path

    return write


def test_a_good_file_is_complete(file, tmp_path):
    jobs = read(file())
    assert jobs.server["name"] == "valley"
    assert jobs.server["trigger"] == 500
    assert jobs.sources["region"].kind == "brokers"
    assert jobs.jobs["hours"]["window"] == 3_600_000
    text = GOOD.replace('"1 h"', '"1 h"\nvalues = { least = "Min( temp )" }')
    assert read(file(text)).jobs["hours"]["values"] == {"least": ("Min", "temp")}
    assert jobs.jobs["history"]["sink"] == ("archive", "db")
    assert jobs.path("x") == tmp_path / "x"
    assert [stream.name for stream in streams_of(jobs)] == [
        "history-archive",
        "hours-db",
    ]
    assert [sink.name for sink in streams_of(jobs)[0].sinks] == ["archive", "db"]


@pytest.mark.parametrize(
    ("before", "after", "fault"),
    [
        ('window = "1 h"', "", "jobs.hours: window is needed"),
        ('window = "1 h"', "window = 60", "expected a length of time"),
        ('"history"\nsource', '"histroy"\nsource', "expected history, windows"),
        ('sink = "db"', 'sink = "bd"', "jobs.hours.sink: there is no bd; there are: archive, db"),
        ('name = "valley"', 'nmae = "valley"', "no server.nmae; did you mean name?"),
        ("[sources.region]", "[source.region]", "there is no source; did you mean sources?"),
        ('kind = "parquet"', 'kind = "delta"', "sinks.archive: found kind delta"),
        ("[jobs.hours]", '[jobs."a/b"]', "expected a table under a name"),
        ("brokers = {", "brokers = 7 #", "expected a table of texts"),
        ("[jobs.history]", "[jobs", "jobs.toml: "),
        ('"1 h"', "1" + "0" * 5_000, "jobs.toml: "),
        ('"1 h"', "[" * 5_000, "jobs.toml: "),
        ('"1 h"', '"1 h"\nvalues = { a = "Median(x)" }', "StdDev(name) of each; a is 'Median(x)'"),
        ('"1 h"', '"1 h"\nvalues = { end = "Max(x)" }', "end is there already"),
        ('"1 h"', '"1 h"\nby = ["a\'b"]', "expected names of columns or values"),
    ],
)
def test_a_faulty_file_is_refused_with_the_reason(file, before, after, fault):
    assert before in GOOD
    with pytest.raises(JobsError) as refused:
        read(file(GOOD.replace(before, after, 1)))
    assert fault in str(refused.value)


@pytest.mark.parametrize(
    ("before", "after", "fault"),
    [
        ("sqlite:///out.db", "postgres://joe:s3cret@h/x", "sinks.db: the database's URL is not"),
        ("sqlite:///out.db", "joe s3cret", "sinks.db: the database's URL is not understood"),
        ("sqlite:///out.db", "sqlite+s3://joe:s3cret@h:x/y", "sinks.db: the database's URL is not"),
        ("sqlite:///out.db", "$NOT_SET_ANYWHERE", "NOT_SET_ANYWHERE, which is not set"),
        ("http://127.0.0.1:8080", "ftp://joe:s3cret@h", "sources.region: brokers: found ftp://…@h"),
        ("http://127.0.0.1:8080", "http://joe:s3cret@h", "no password belongs into an address"),
        ("[jobs.history]", 'options = { maxRows = "5" }\n[jobs.history]', "no option maxrows"),
        ('"sqlite:///out.db"', '"x"\n[sinks.m]\nkind="mqtt"\nurl="mqtt://j:s3cret@h"', "no passw"),
        ('"sqlite:///out.db"', '"x"\n[sinks.m]\nkind="mqtt"\nurl="mqtt://h:99999"', "out of range"),
        ('"sqlite:///out.db"', '["s3cret"]', "sinks.db.url: found what is no text"),
    ],
)
def test_what_sources_and_sinks_do_not_understand_is_told_before_anything_starts(
    file, before, after, fault
):
    assert before in GOOD
    with pytest.raises(JobsError) as refused:
        check(file(GOOD.replace(before, after, 1)))
    assert fault in str(refused.value)
    assert "s3cret" not in str(refused.value)


HOURS = 'window = "1 h"'
MQTT = 'kind = "mqtt"\ntopic = '
JOIN = 'kind = "join"\nwithin = "5 s"\nleft = {subscription = "A", broker = "b1"}\nright = '
FILES = 'kind = "events"\npath = "in" #'


@pytest.mark.parametrize(
    ("before", "after", "fault"),
    [
        (HOURS, 'window = "0 s"', "jobs.hours.window: expected a window longer than nothing"),
        (HOURS, f'{HOURS}\nslide = "2 h"', "jobs.hours.slide: expected more than nothing, and no"),
        (f'"windows"\nsource = "region"\n{HOURS}', '"dedup"\nsource = "region"\nwithin = "0 s"',
         "jobs.hours.within: nothing is within no time"),
        (f'kind = "windows"\nsource = "region"\n{HOURS}',
         f'source = "region"\n{JOIN}{{subscription = "B", broker = "b3"}}',
         "jobs.hours.right.broker: region has no b3; there are: b1, b2"),
        ('kind = "database"\nurl = "sqlite:///out.db"', f'{MQTT}"a/{{actor}}/{{nmae}}"',
         "sinks.db.topic: no job has {nmae}; there are: broker, epoch"),
        ("url =", 'table = "all"\nurl =', "sinks.db.table: history and hours have other columns"),
        ("[sinks.db]", '[sinks.second]\nkind = "parquet"\npath = "./history"\n[sinks.db]',
         "sinks.second.path: archive has that folder; each needs one of its own"),
        ("brokers = {", FILES, "jobs.history.source: a job of kind history reads brokers, and"),
        ('name = "valley"', 'memory = "lots"', "server.memory: found lots, expected such as"),
        ('name = "valley"', 'master = "locall"', "server.master: found locall, expected local["),
        ('name = "valley"', "shuffle_partitions = 0", "server.shuffle_partitions: found 0"),
    ],
)  # fmt: skip
def test_what_does_not_fit_together_is_told_before_anything_starts(file, before, after, fault):
    assert before in GOOD
    with pytest.raises(JobsError) as refused:
        check(file(GOOD.replace(before, after, 1)))
    assert fault in str(refused.value)


def test_a_topic_may_name_what_its_jobs_give(file):
    sink = 'kind = "mqtt"\ntopic = "days/{location}/{count}"'
    check(file(GOOD.replace('kind = "database"\nurl = "sqlite:///out.db"', sink)))


def test_a_password_that_is_not_there_is_told_before_anything_starts(file, monkeypatch):
    text = GOOD.replace("[jobs.history]", 'user = "me"\npassword_env = "LOGIN"\n[jobs.history]')
    monkeypatch.delenv("LOGIN", raising=False)
    check(file(text))  # the machine that checks need not be the one that runs
    with pytest.raises(JobsError, match=r"sources\.region: no password for me: LOGIN is not set"):
        run(file(text))


def test_a_faulty_specification_is_told_with_all_else_before_anything_starts(file, tmp_path):
    (tmp_path / "upper.hw").write_text("event A(v: int)\nsubscription S from a to b detect B")
    detect = 'kind = "detect"\nsource = "region"\nspecification = "upper.hw"\nsink = "db"\n'
    text = GOOD.replace("[sinks.archive]", f"[jobs.upper]\n{detect}[sinks.archive]")
    text = text.replace("http://127.0.0.1:8081", "ftp://b2")
    for told_by in (check, run):
        with pytest.raises(JobsError) as refused:
            told_by(file(text))
        told = str(refused.value)
        assert "upper.hw:2:35: HW201: `B` is no event type here" in told
        assert "sources.region: brokers: found ftp://b2" in told
    assert not (tmp_path / "state").exists()


def begun(jobs, lead, *sinks):
    """A stream of the history that was begun with these sinks."""
    checkpoint(jobs, jobs.jobs["history"], lead, NOTHING, sinks)


def streams(jobs):
    return [
        (stream.lead, [sink.name for sink in stream.sinks])
        for stream in streams_of(jobs)
        if stream.job.name == "history"
    ]


def test_a_stream_for_each_sink_of_an_older_version_goes_on_as_it_was(file):
    jobs = read(file())
    for name in ("archive", "db"):
        begun(jobs, name)
        old = jobs.path("state") / f"history-{name}-1" / "headwater.json"
        content = json.loads(old.read_text())
        del content["sinks"]
        old.write_text(json.dumps(content))
    assert streams(jobs) == [("archive", ["archive"]), ("db", ["db"])]


def test_a_sink_that_comes_later_has_a_stream_of_its_own(file):
    """From the beginning of the logs; the others go on where they are, as one."""
    jobs = read(file())
    begun(jobs, "archive", "archive", "db")
    assert streams(jobs) == [("archive", ["archive", "db"])]
    text = GOOD.replace('["archive", "db"]', '["screen", "archive", "db"]')
    more = read(file(f'{text}\n[sinks.screen]\nkind = "console"\n'))
    assert streams(more) == [("screen", ["screen"]), ("archive", ["archive", "db"])]


def test_a_sink_that_was_taken_out_is_not_filled_again_with_a_gap(file):
    jobs = read(file())
    begun(jobs, "archive", "archive", "db")
    fewer = read(file(GOOD.replace('["archive", "db"]', '"archive"')))
    assert streams(fewer) == [("archive", ["archive"])]
    begun(fewer, "archive", "archive")
    assert streams(jobs) == [("archive", ["archive"]), ("db", ["db"])]
    begun(jobs, "archive", "db")
    with pytest.raises(JobsError, match="sink archive was taken out of it before"):
        streams_of(jobs)


def test_jobs_that_mean_something_else_are_told_before_anything_starts(file, tmp_path, monkeypatch):
    jobs = read(file())
    for stream in streams_of(jobs):
        checkpoint(jobs, stream.job, stream.lead)
    monkeypatch.setattr("server.process.start", lambda _: pytest.fail("Spark was started"))
    other = GOOD.replace('"1 h"', '"2 h"').replace(
        '[jobs.hours]\nkind = "windows"\nsource = "region"\nwindow = "2 h"',
        '[jobs.new]\nkind = "history"\nsource = "region"\nsink = "db"\n'
        '[jobs.hours]\nkind = "windows"\nsource = "region"\nwindow = "2 h"',
    )
    other = other.replace(
        'sink = ["archive", "db"]', 'sink = ["archive"]\nsubscriptions = ["Frost"]'
    )
    with pytest.raises(JobsError) as refused:
        run(file(other))
    told = str(refused.value).splitlines()
    assert [one.partition(" means")[0] for one in told] == ["jobs.history", "jobs.hours"]
    assert not list((tmp_path / "state").glob("new-*"))  # it may still be changed


def test_what_is_no_text_is_told_as_such(file, tmp_path):
    path = file()
    path.write_bytes(b'[server]\nname = "\xff"\n')
    with pytest.raises(JobsError) as refused:
        read(path)
    assert str(refused.value) == f"{path}: not UTF-8"


def test_every_fault_is_told(file):
    text = GOOD.replace('window = "1 h"', "window = 60").replace("path =", "paht =")
    with pytest.raises(JobsError) as refused:
        read(file(text))
    told = str(refused.value).splitlines()
    assert len(told) == 3
    assert all("jobs.toml: " in line for line in told)


def test_a_file_that_is_not_there(tmp_path):
    with pytest.raises(JobsError, match="no such file"):
        read(tmp_path / "none.toml")


def test_two_jobs_cannot_write_one_folder(file):
    text = GOOD.replace('sink = "db"', 'sink = "archive"')
    with pytest.raises(JobsError, match="history and hours cannot write one folder"):
        streams_of(read(file(text)))


@pytest.mark.parametrize(
    ("said", "ms"),
    [("250 ms", 250), ("10s", 10_000), ("5 mins", 300_000), ("2 h", 7_200_000), ("1 day", 86.4e6)],
)
def test_lengths_of_time(said, ms):
    assert duration_ms(said) == ms


@pytest.mark.parametrize("said", ["", "5", "-5 s", "5 weeks", "1.5 s", 5, None])
def test_no_lengths_of_time(said):
    with pytest.raises(ValueError, match="expected a length of time"):
        duration_ms(said)


# --- checkpoints ---------------------------------------------------------------------------------


def test_a_checkpoint_is_found_again(file):
    jobs = read(file())
    first = checkpoint(jobs, jobs.jobs["hours"], "db", JobMeaning("text"))
    assert checkpoint(jobs, jobs.jobs["hours"], "db", JobMeaning("text")) == first
    assert checkpoint(jobs, jobs.jobs["history"], "db").id != first.id


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ("b2 = ", "b3 = "),  # a broker more and one less
        ("[sources.region]", '[sources.region]\naway = "fail"\nbatch_rows = 10'),
        ('name = "valley"', 'name = "valley"\ntrigger = "1 s"'),
    ],
)
def test_what_does_not_change_the_meaning_may_change(file, before, after):
    jobs = read(file())
    first = checkpoint(jobs, jobs.jobs["hours"], "db")
    later = read(file(GOOD.replace(before, after)))
    assert checkpoint(later, later.jobs["hours"], "db") == first


@pytest.mark.parametrize(
    ("before", "after", "text"),
    [
        ('window = "1 h"', 'window = "2 h"', ""),
        ('window = "1 h"', 'window = "1 h"\nby = ["subscription"]', ""),
        ("", "", "another specification"),
    ],
)
def test_another_meaning_is_refused_until_it_has_another_version(file, before, after, text):
    jobs = read(file())
    first = checkpoint(jobs, jobs.jobs["hours"], "db")
    later = read(file(GOOD.replace(before, after)))
    with pytest.raises(JobsError, match=r"jobs\.hours means something else"):
        checkpoint(later, later.jobs["hours"], "db", JobMeaning(text, text))
    anew = read(file(GOOD.replace(before, after).replace('"1 h"', '"1 h"\nversion = 2', 1)))
    if 'window = "2 h"' in after:
        anew = read(file(GOOD.replace(before, after + "\nversion = 2")))
    assert checkpoint(anew, anew.jobs["hours"], "db", JobMeaning(text, text)).id != first.id


def test_a_damaged_checkpoint_is_a_sentence(file):
    jobs = read(file())
    place = checkpoint(jobs, jobs.jobs["hours"], "db")
    (place.folder / "headwater.json").write_text('{"format": 1')
    with pytest.raises(JobsError, match="damaged"):
        checkpoint(jobs, jobs.jobs["hours"], "db")
    (place.folder / "headwater.json").write_text(json.dumps({"format": 9, "mark": "", "id": ""}))
    with pytest.raises(JobsError, match="newer Headwater"):
        checkpoint(jobs, jobs.jobs["hours"], "db")


def test_a_folder_of_history_belongs_to_one_checkpoint(file, tmp_path):
    """Spark would pass over the first batches of another one without a word."""
    jobs = read(file())
    first = checkpoint(jobs, jobs.jobs["history"], "archive")
    claim(tmp_path / "history", first)
    claim(tmp_path / "history", first)
    other = checkpoint(jobs, jobs.jobs["history"], "db")
    with pytest.raises(JobsError, match="another checkpoint"):
        claim(tmp_path / "history", other)
    (tmp_path / "foreign" / "_spark_metadata").mkdir(parents=True)
    with pytest.raises(JobsError, match="something else"):
        claim(tmp_path / "foreign", first)


def test_two_servers_do_not_share_a_folder_of_checkpoints(file):
    jobs = read(file())
    with claimed(jobs), pytest.raises(JobsError, match="in use by another server"), claimed(jobs):
        pass
    with claimed(jobs), pytest.raises(OSError, match="mine"):  # its own errors stay what they are
        raise OSError("mine")
    with claimed(jobs):
        pass


DETECT = """
[jobs.both]
kind = "detect"
source = "region"
specification = "both.hw"
sink = "db"
"""
BOTH = "event A(n: int)\nsubscription B seq 1 from t to u\ndetect A as a where a.n > 1\n"


def test_a_comment_in_a_specification_is_no_other_meaning(file, tmp_path):
    """Nor is one in the text of a checkpoint of before, which was of the text as it was written."""

    def mark():
        saved = tmp_path / "state" / "both-db-1" / "headwater.json"
        return json.loads(saved.read_text())["mark"]

    def begun(text):
        (tmp_path / "both.hw").write_text(text)
        (stream,) = (one for one in streams_of(read(file(GOOD + DETECT))) if one.job.name == "both")
        meaning = stream._meaning()
        checkpoint(stream.jobs, stream.job, stream.lead, meaning)
        return stream

    stream = begun(BOTH)
    first = mark()
    begun("# rather many\n" + BOTH.replace("a.n > 1", "a.n  >  1"))
    assert mark() == first
    with pytest.raises(JobsError, match="means something else"):
        begun(BOTH.replace("> 1", "> 2"))
    written = "# by hand\n" + BOTH
    old = fingerprint(stream.jobs, stream.job, written)
    saved = tmp_path / "state" / "both-db-1" / "headwater.json"
    saved.write_text(json.dumps(json.loads(saved.read_text()) | {"mark": old}))
    begun(written)
    assert mark() == first


PAST = GOOD.replace('window = "1 h"', 'window = "1 h"\nbackfill = "month"').replace(
    "[jobs.history]", '[sources.month]\nkind = "history"\npath = "{path}"\n[jobs.history]'
)


def test_a_job_may_begin_with_a_history_that_another_makes(file):
    text = PAST.replace("{path}", "history")
    check(file(text.replace("backfill", "since = { b1 = 7 }\nbackfill")))


@pytest.mark.parametrize(
    ("before", "after", "fault"),
    [
        ('"month"\nsink', '"moth"\nsink', "jobs.hours.backfill: there is no moth"),
        (
            'backfill = "month"',
            'backfill = "region"',
            "region is of kind brokers, expected history",
        ),
        ('backfill = "month"', 'backfill = "month"\nsince = { b3 = 1 }', "region has no b3"),
        ('backfill = "month"', 'backfill = "month"\nsince = "noon"', "expected a time, such as"),
        ('path = "history"', 'path = "other"', "backfill: .* holds no history"),
    ],
)
def test_a_history_that_cannot_be_begun_with_is_refused(file, before, after, fault):
    text = PAST.replace("{path}", "history")
    assert before in text
    text = text.replace(before, after) if "path" not in before else text.replace(before, after, 1)
    with pytest.raises(JobsError, match=fault):
        check(file(text))


def test_a_job_that_writes_into_the_history_that_it_reads_is_refused(file):
    begin, end = PAST.index("[jobs.history]"), PAST.index("[jobs.hours]")
    text = (PAST[:begin] + PAST[end:]).replace("{path}", "history")
    with pytest.raises(JobsError, match=r"sink: .*history is what the job reads"):
        check(file(text.replace('sink = "db"', 'sink = ["db", "archive"]')))


def test_a_history_of_other_subscriptions_is_refused(file, tmp_path):
    jobs = read(file())
    place = checkpoint(jobs, jobs.jobs["history"], "archive")
    claim(tmp_path / "history", place, ["Frost"])
    (tmp_path / "history" / "_spark_metadata").mkdir()
    text = PAST.replace("{path}", "history")
    with pytest.raises(JobsError, match="holds Frost alone, and the job wants all subscriptions"):
        check(file(text))
    check(file(text.replace("backfill", 'subscriptions = ["Frost"]\nbackfill')))


def test_a_backfill_is_another_meaning_and_none_is_that_of_before(file):
    """Checkpoints of versions that had no backfill go on."""
    plain, past = read(file()), read(file(PAST.replace("{path}", "history")))
    marks = [fingerprint(jobs, jobs.jobs["hours"], "") for jobs in (plain, past)]
    assert marks[0] != marks[1]
    assert marks[0] == "8f5585e1373a695192312060d2b5f211"  # as it was before there was one
