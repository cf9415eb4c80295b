"""What `headwater replay` reads: every line of every file ends as an event or with its reason."""

import csv
import gzip
import io
import os
import threading
from itertools import pairwise
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from headwater.replays import records
from headwater.replays.columns import ColumnError, parse_map
from headwater.replays.lines import UnreadableError, lines_of
from headwater.replays.readers import BadLine, CsvEvents, JsonLinesReader, read_events

TYPES = {
    "Temp": {"val": "float", "count": "int", "note": "text", "ok": "bool", "raw": "bytes"},
    "wind_speed": {"value": "float"},
}


def write(folder: Path, name: str, data: str | bytes) -> str:
    path = folder / name
    path.write_bytes(data.encode() if isinstance(data, str) else data)
    return str(path)


def collect(files, types=TYPES, **options) -> CsvEvents:
    """All batches of CSV files as one."""
    whole = CsvEvents("")
    for batch in read_events(files, types, **options):
        assert isinstance(batch, CsvEvents)
        whole.events += batch.events
        whole.numbers += batch.numbers
        whole.bad += batch.bad
        for name, count in batch.undeclared.items():
            whole.undeclared[name] = whole.undeclared.get(name, 0) + count
    assert len(whole.events) == len(whole.numbers)
    return whole


def from_text(text: str | bytes, **options) -> CsvEvents:
    data = text.encode() if isinstance(text, str) else text
    return collect(["-"], stdin=io.BytesIO(data), **options)


def reasons(batch: CsvEvents) -> dict[int, str]:
    return {bad.line: bad.reason for bad in batch.bad}


@pytest.mark.parametrize(
    ("data", "says"),
    [
        (b"PK\x03\x04rest", "packed with zip"),
        (b"BZh91AY&SY", "packed with bzip2"),
        (b"\xfd7zXZ\x00\x00", "packed with xz"),
        (b"\x28\xb5\x2f\xfd\x04", "packed with zstd"),
        ("type,timestamp\n".encode("utf-16"), "save it as UTF-8"),
        ("type,timestamp\n".encode("utf-16-be"), "no column names"),  # nothing tells it
        (b'[\n {"type": "Temp"}\n]\n', "JSON over several lines"),
        (b' \n{\r\n "type": "Temp"\n}\n', "JSON over several lines"),
    ],
)
def test_a_file_of_another_kind_is_named_as_what_it_is(data, says):
    for drop_by_drop in (False, True):
        stdin = Drips(*(data[n : n + 1] for n in range(len(data)))) if drop_by_drop else None
        with pytest.raises(UnreadableError, match=says):
            list(read_events(["-"], TYPES, stdin=stdin or io.BytesIO(data)))


# --- lines ------------------------------------------------------------------------------------


class Drips:
    """A pipe that gives what it is told, piece by piece."""

    def __init__(self, *pieces: bytes) -> None:
        self.pieces = list(pieces)

    def read1(self, _size: int) -> bytes:
        return self.pieces.pop(0) if self.pieces else b""


def lines_from(*pieces: bytes, limit: int = 50) -> list[tuple[int, bytes]]:
    found = []
    for chunk in lines_of("-", stdin=Drips(*pieces), line_bytes_max=limit):
        for number, line in enumerate(chunk.lines, chunk.first_line):
            found.append((number, b"TOO LONG" if number in chunk.too_long else line))
    return found


@given(
    st.lists(st.binary(max_size=12).map(lambda line: line.replace(b"\n", b"")), max_size=12),
    st.lists(st.integers(0, 200), max_size=12),
    st.booleans(),
)
def test_where_a_read_ends_does_not_show_in_the_lines(lines, cuts, ended):
    data = b"x" + b"\n".join(lines) + (b"\n" if ended else b"")
    places = sorted({0, len(data), *(cut for cut in cuts if cut < len(data))})
    pieces = [data[a:b] for a, b in pairwise(places)]
    expected = [
        (number, line if len(line) <= 8 else b"TOO LONG")
        for number, line in enumerate(data.removesuffix(b"\n").split(b"\n"), 1)
    ]
    assert lines_from(*pieces, limit=8) == expected


def test_a_line_without_end_is_thrown_away_as_it_comes():
    pieces = [b"ok\n", *[b"x" * 40] * 50, b"\nnext\n"]
    assert lines_from(*pieces) == [(1, b"ok"), (2, b"TOO LONG"), (3, b"next")]


def test_a_long_line_at_the_very_end_is_named():
    assert lines_from(b"ok\n", b"x" * 51) == [(1, b"ok"), (2, b"TOO LONG")]


def test_a_byte_order_mark_is_no_part_of_the_first_line():
    assert lines_from(b"\xef", b"\xbb\xbfa\n\xef\xbb\xbfb") == [(1, b"a"), (2, b"\xef\xbb\xbfb")]
    assert lines_from(b"\xef\xbb\xbfa") == [(1, b"a")]


def test_gzip_is_told_by_content_and_its_members_follow_each_other():
    packed = gzip.compress(b"a\nb") + gzip.compress(b"c\n") + b"\0" * 7
    assert lines_from(*[packed[i : i + 1] for i in range(len(packed))]) == [(1, b"a"), (2, b"bc")]
    assert lines_from(packed) == [(1, b"a"), (2, b"bc")]


def test_what_unpacks_to_much_is_unpacked_a_chunk_at_a_time():
    packed = gzip.compress(b"0123456789\n" * 300_000)
    sizes = [sum(map(len, chunk.lines)) for chunk in lines_of("-", stdin=Drips(packed, b""))]
    assert len(sizes) > 10
    assert sum(sizes) == 3_000_000


@pytest.mark.parametrize("cut", [3, 12, -9, -1])
def test_gzip_data_that_ends_early_is_refused(cut):
    packed = gzip.compress(b"a,b\n" * 1000)
    with pytest.raises(UnreadableError, match="standard input: the gzip data ends early"):
        lines_from(packed[:cut])


def test_damaged_gzip_data_is_refused():
    packed = bytearray(gzip.compress(os.urandom(1000)))
    packed[500] ^= 0xFF
    with pytest.raises(UnreadableError, match="the gzip data is damaged"):
        lines_from(bytes(packed))


def test_a_missing_file_and_a_folder_are_named(tmp_path):
    with pytest.raises(UnreadableError, match=r"none\.csv: no such file or directory"):
        collect([str(tmp_path / "none.csv")])
    with pytest.raises(UnreadableError, match="is a directory"):
        collect([str(tmp_path)])


# --- which format -----------------------------------------------------------------------------


@pytest.mark.parametrize("pack", [bytes, gzip.compress])
@pytest.mark.parametrize("start", [b"", b"\xef\xbb\xbf", b"\n  \n"])
def test_json_lines_are_handed_on_undecoded_with_their_numbers(pack, start):
    data = start + b'{"type": "A"}\r\n\n \n[{"type": "B"}, 1]\nnonsense'
    batches = list(read_events(["-"], {}, stdin=io.BytesIO(pack(data))))
    assert all(isinstance(batch, JsonLinesReader) for batch in batches)
    numbered = [
        (number, line.strip())
        for batch in batches
        for number, line in enumerate(batch.lines, batch.first_line)
        if line
    ]
    first = 1 + start.count(b"\n")
    assert numbered == [
        (first, b'{"type": "A"}'),
        (first + 3, b'[{"type": "B"}, 1]'),
        (first + 4, b"nonsense"),
    ]


def test_json_lines_that_were_cut_off_at_the_beginning_are_json_lines_wherever_reads_end():
    """As a log is that was rotated in the middle of a line: one bad line, and no odd header."""
    end, feed = os.pipe()
    with os.fdopen(end, "rb") as stdin, os.fdopen(feed, "wb", buffering=0) as writer:
        batches = read_events(["-"], TYPES, stdin=stdin)
        writer.write(b'Temp", "val": 1}\n')
        later = threading.Timer(0.05, writer.write, [b'\n{"type": "Temp"}\n'])
        later.start()
        found = next(batches)
        later.join()
        assert isinstance(found, JsonLinesReader)
        assert found.lines == [b'Temp", "val": 1}', b"", b'{"type": "Temp"}']
        writer.close()


def test_a_header_alone_is_csv_whatever_follows_it_in_its_cells():
    assert from_text("type,timestamp\n").events == []
    (event,) = from_text('type,timestamp,note\n\nTemp,1,"{}"\n').events
    assert event["note"] == "{}"


def test_a_json_line_longer_than_allowed_is_bad():
    data = b'{"a": 1}\n{"a": "' + b"x" * 100 + b'"}\n{"a": 2}\n'
    (batch,) = read_events(["-"], {}, stdin=io.BytesIO(data), line_bytes_max=50)
    assert batch.lines == [b'{"a": 1}', b"", b'{"a": 2}']
    assert [str(bad) for bad in batch.bad] == ["standard input:2: longer than 50 bytes"]


def test_nothing_gives_nothing(tmp_path):
    files = [write(tmp_path, "empty", b""), write(tmp_path, "blank", b"\n \n")]
    files.append(write(tmp_path, "empty.gz", gzip.compress(b"")))
    assert list(read_events(files, TYPES)) == []


def test_several_files_of_both_formats_follow_each_other_each_with_its_header(tmp_path):
    files = [
        write(tmp_path, "a.csv", "type,timestamp,val\nTemp,1,1.5\n"),
        write(tmp_path, "b.log", b'{"type": "Temp"}\n'),
        write(tmp_path, "c.txt", gzip.compress(b"val,timestamp,type\n2.5,2,Temp\n")),
    ]
    batches = list(read_events(files, TYPES))
    assert [batch.file for batch in batches] == files
    assert batches[0].events == [{"type": "Temp", "timestamp": 1, "val": 1.5}]
    assert batches[2].events == [{"type": "Temp", "timestamp": 2, "val": 2.5}]


def test_a_pipe_is_passed_on_line_by_line():
    """Each line arrives before the next is written: waiting for more would never end."""
    end, feed = os.pipe()
    with os.fdopen(end, "rb") as stdin, os.fdopen(feed, "wb", buffering=0) as writer:
        batches = read_events(["-"], TYPES, stdin=stdin)
        writer.write(b"type,timestamp,val\nTemp,1,1.5\n")
        assert next(batches).events[0]["timestamp"] == 1
        writer.write(b"Temp,2,")
        later = threading.Timer(0.05, writer.write, [b"2.5\n"])
        later.start()
        found = []
        while not found:
            found = next(batches).events
        later.join()
        assert found == [{"type": "Temp", "timestamp": 2, "val": 2.5}]
        writer.close()
        assert list(batches) == []


# --- columns ----------------------------------------------------------------------------------


def test_reserved_names_and_attributes_are_read_by_their_types():
    batch = from_text(
        "type,id,source,location,start,end,uncertainty,position,val,count,note,ok,raw,other\n"
        'Temp,t1,s1,a/b,1,2,5,"[45.5, 7]",-1.5e1,-7,"say ""x"", y",TRUE,AAEC,zzz\n'
        "Temp,t2,,,,2007-10-09T00:00Z,,,,,,0,,\n"
    )
    assert batch.bad == []
    assert batch.events == [
        {
            "type": "Temp",
            "id": "t1",
            "source": "s1",
            "location": "a/b",
            "start": 1,
            "end": 2,
            "uncertainty": 5,
            "position": [45.5, 7],
            "val": -15.0,
            "count": -7,
            "note": 'say "x", y',
            "ok": True,
            "raw": b"\0\1\2",
        },
        {"type": "Temp", "id": "t2", "end": "2007-10-09T00:00Z", "ok": False},
    ]
    assert isinstance(batch.events[0]["val"], float)
    assert batch.events[1]["ok"] is False


def test_a_whole_number_is_a_float_where_the_type_says_so():
    (event,) = from_text("type,timestamp,val\nTemp,1,7\n").events
    assert isinstance(event["val"], float)


def test_the_long_form_and_the_names_understood_unasked():
    batch = from_text(
        "timestamp_ms,station,lat,lon,attribute,value\n"
        "1488758459000,S06,1.3524,103.9007,wind_speed,1.13\n"
        "1488758459000,GSB2,,,wind_speed,\n"
        "1488758459000,GSB2,,,rain,3\n"
        "1488758459000,GSB2,,,rain,none\n"
    )
    assert batch.bad == []
    assert batch.undeclared == {"rain": 2}
    assert batch.numbers == [2, 3]
    assert batch.events == [
        {
            "type": "wind_speed",
            "source": "S06",
            "timestamp": 1488758459000,
            "position": [1.3524, 103.9007],
            "value": 1.13,
        },
        {"type": "wind_speed", "source": "GSB2", "timestamp": 1488758459000},
    ]


def test_a_columns_own_name_goes_before_the_names_understood_unasked():
    (event,) = from_text(
        "type,attribute,source,station,timestamp,timestamp_ms,val\nTemp,x,a,b,1,2,3\n"
    ).events
    assert event == {"type": "Temp", "source": "a", "timestamp": 1, "val": 3.0}


def test_srcid_is_accepted_for_source_as_in_json_lines():
    (event,) = from_text("type,timestamp,station,srcid\nTemp,1,a,b\n").events
    assert event == {"type": "Temp", "timestamp": 1, "source": "b"}


def test_map_names_columns_and_constants():
    mapping = columns("timestamp=time,source=mote,x=x_m,y=y_m,type=kind", "location==hall, val=v")
    batch = from_text(
        "time,mote,x_m,y_m,kind,v\n5,m1,1.5,2,Temp,3\n6,m1,,,Temp,4\n", mapping=mapping
    )
    assert batch.events == [
        {
            "type": "Temp",
            "source": "m1",
            "location": "hall",
            "timestamp": 5,
            "position": {"x": 1.5, "y": 2.0},
            "val": 3.0,
        },
        {"type": "Temp", "source": "m1", "location": "hall", "timestamp": 6, "val": 4.0},
    ]


def test_a_constant_type_and_a_height(tmp_path):
    types = {"RfidRead": {"tag": "text", "power": "int"}}
    mapping = columns('type="=RfidRead"', "source=reader,height=alt,power==7")
    (event,) = from_text(
        "timestamp_ms,tag,reader,lat,lon,alt\n1,t9,r1,50,-120,3\n", types=types, mapping=mapping
    ).events
    assert event == {
        "type": "RfidRead",
        "source": "r1",
        "timestamp": 1,
        "position": [50.0, -120.0, 3.0],
        "tag": "t9",
        "power": 7,
    }


def test_a_column_mapped_to_one_name_serves_another_only_where_asked():
    types = {"Read": {"tag": "text", "owner": "text"}}
    text = "timestamp,tag\n1,t9\n"
    (event,) = from_text(text, types=types, mapping=columns("type==Read,source=tag")).events
    assert event == {"type": "Read", "source": "t9", "timestamp": 1}
    mapping = columns("type==Read,source=tag,tag=tag,owner=tag")
    (event,) = from_text(text, types=types, mapping=mapping).events
    assert event == {"type": "Read", "source": "t9", "timestamp": 1, "tag": "t9", "owner": "t9"}


def test_a_declared_attribute_x_is_no_coordinate():
    types = {"Shake": {"x": "float", "lat": "float"}}
    (event,) = from_text(
        "type,timestamp,gx,lat\nShake,1,2,3\n", types=types, mapping=columns("x=gx")
    ).events
    assert event == {"type": "Shake", "timestamp": 1, "x": 2.0, "lat": 3.0}


def columns(*texts: str):
    return parse_map(texts)


@pytest.mark.parametrize(
    ("header", "options", "says"),
    [
        ("timestamp,val", (), "no column names the event type"),
        ("type,val", (), r"no column gives the time; .* \(found: type, val\)"),
        ("type,timestamp,val,val", (), "names `val` twice"),
        ('type,"timestamp', (), "header row: a quotation mark"),
        ("type,timestamp,val", ("valu=val",), "--map valu: no such name; did you mean val?"),
        ("type,when,val", ("timestamp=wen",), "no such column; did you mean when?"),
        ("timestamp", ("type==Tempo",), "no event type `Tempo` is declared; did you mean Temp?"),
        ("type,timestamp,xm", ("x=xm",), "--map x: a position needs both x and y"),
        ("type,timestamp,a,b", ("x=a,y=b,lat=a,lon=b",), "both x, y and lat, lon"),
        ("type,timestamp", ("lat==5",), "a coordinate cannot be a constant"),
        ("type;timestamp;val", (), "parted by semicolons; write commas"),
        ("type\ttimestamp\tval", ("val=v",), "parted by tabs; write commas"),
        ("type,timestamp", ("count==many",), "--map count: `many` is not an integer"),
    ],
)
def test_a_header_or_mapping_that_makes_no_sense_stops_the_file(header, options, says):
    with pytest.raises(UnreadableError, match=says):
        from_text(header + "\nTemp,1,2\n", mapping=columns(*options))


def test_a_lone_column_may_be_named_as_it_likes():
    mapping = columns("timestamp=at;ms", "type==Temp")
    (event,) = from_text("at;ms\n5\n", mapping=mapping).events
    assert event == {"type": "Temp", "timestamp": 5}


@pytest.mark.parametrize("text", ["timestamp", "=x", "timestamp=", "a=b,a=c", "a=b,a==c"])
def test_a_malformed_mapping_is_refused(text):
    with pytest.raises(ColumnError, match=r"is no mapping|mapped twice"):
        columns(text)


# --- bad lines --------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("column", "cell", "says"),
    [
        ("val", "abc", "column val: `abc` is not a number"),
        ("val", "nan", "`nan` is not a number"),
        ("val", "-inf", "`-inf` is not a number"),
        ("val", "1e999", "`1e999` is not a number"),
        ("val", "1_0", "`1_0` is not a number"),
        ("val", "٣", "`٣` is not a number"),
        ("count", "３", "`３` is not an integer"),
        ("count", "7.0", "`7.0` is not an integer of 64 bits"),
        ("count", str(2**63), "is not an integer of 64 bits"),
        ("count", "9" * 5000, r"`9{40}…` is not an integer"),
        ("ok", "yes", "`yes` is not true, false, 1 or 0"),
        ("raw", "A", "`A` is not base64"),
        ("position", "[" * 100_000, "is not a position"),
        ("uncertainty", "x", "column uncertainty: `x` is not an integer"),
    ],
)
def test_a_bad_cell_makes_a_bad_line_named_by_file_line_and_reason(tmp_path, column, cell, says):
    file = write(tmp_path, "f.csv", f"type,timestamp,{column}\nTemp,1,\nTemp,2,{cell}\nTemp,3,\n")
    batch = collect([file])
    assert [event["timestamp"] for event in batch.events] == [1, 3]
    (bad,) = batch.bad
    assert (bad.file, bad.line) == (file, 3)
    with pytest.raises(AssertionError, match=says):
        raise AssertionError(bad.reason)
    assert str(bad) == f"{file}:3: {bad.reason}"


def test_bad_rows_are_named_and_the_others_stand():
    batch = from_text(
        b"type,timestamp,lat,lon,val\r\n"
        b"Temp,1,,,1\r\n"
        b"Temp,2,1,\r\n"
        b"Temp,3,1,,1\r\n"
        b"\r\n"
        b",4,,,1\r\n"
        b"T\xe9mp,5,,,1\r\n"
        b'Temp,6,,,"1"x\r\n'
        b"Temp,7,,,2"
    )
    assert [event["timestamp"] for event in batch.events] == [1, 7]
    assert batch.numbers == [2, 9]
    assert reasons(batch) == {
        3: "4 cells where the header names 5 columns",
        4: "columns lat and lon: `1`, `` is not a position",
        6: "the cell that names the event type is empty",
        7: "not UTF-8 text",
        8: "a quotation mark is out of place or is never closed",
    }


def test_a_line_longer_than_allowed_is_bad_and_in_order_with_the_others():
    text = "type,timestamp,note\nTemp,x,y,z\nTemp,1," + "n" * 100 + "\nTemp,2,ok\nTemp\n"
    batch = from_text(text, line_bytes_max=50)
    assert [event["timestamp"] for event in batch.events] == [2]
    assert [bad.line for bad in batch.bad] == [2, 3, 5]
    assert batch.bad[1] == BadLine("-", 3, "longer than 50 bytes")


def test_a_header_longer_than_allowed_stops_the_file():
    with pytest.raises(UnreadableError, match="header row is longer than 50 bytes"):
        from_text("type,timestamp," + "n" * 100 + "\nTemp,1,2\n", line_bytes_max=50)


@pytest.mark.parametrize("before", [b"", b"\n  \r\n", "\ufeff".encode()])
def test_a_first_line_of_json_that_is_too_long_is_a_bad_line_as_any_other(before):
    event = b'{"type": "Temp", "timestamp": 1}\n'
    data = before + b'[{"type": "Temp", "note": "' + b"n" * 100 + b'"}]\n' + event
    number = 1 + before.count(b"\n")
    for pieces in ([data], [data[:60], data[60:]], [data[i : i + 1] for i in range(len(data))]):
        batches = list(read_events(["-"], {}, stdin=Drips(*pieces), line_bytes_max=50))
        bad = [one for batch in batches for one in batch.bad]
        assert bad == [BadLine("-", number, "longer than 50 bytes")]
        lines = [line for batch in batches for line in batch.lines if line]
        assert lines == [event.rstrip()]


# --- quoting ----------------------------------------------------------------------------------


def test_a_quoted_text_may_hold_line_ends():
    batch = from_text('type,timestamp,note\nTemp,1,"a\nb ""c"",\n\nd"\nTemp,2,e\n')
    assert batch.bad == []
    assert [event["note"] for event in batch.events] == ['a\nb "c",\n\nd', "e"]
    assert batch.numbers == [2, 6]


@pytest.mark.parametrize("length", [1, 20, records.RECORD_LINES_MAX, 5 * records.RECORD_LINES_MAX])
def test_a_stray_quotation_mark_costs_its_own_line_alone(length):
    text = 'type,timestamp,note\nTemp,0,"oops\n'
    text += "".join(f"Temp,{index},fine\n" for index in range(1, length + 1))
    batch = from_text(text)
    assert list(reasons(batch)) == [2]
    assert [event["timestamp"] for event in batch.events] == list(range(1, length + 1))


def test_lines_of_nothing_but_stray_quotation_marks_are_all_bad():
    batch = from_text("type,timestamp,note\n" + 'Temp,1,"x\n' * 1001)
    assert batch.events == []
    assert len(batch.bad) == 1001


cells = st.text(st.sampled_from('ab,"\n é'), max_size=6)


@given(st.lists(st.tuples(cells, cells), max_size=8), st.lists(st.integers(1, 300), max_size=5))
def test_what_a_csv_writer_writes_is_read_back(rows, cuts):
    """Also across the ends of reads. The writer is the standard library's, quoting where needed."""
    out = io.StringIO()
    csv.writer(out, lineterminator="\n").writerows(
        [("type", "timestamp", "note", "source"), *(("Temp", 1, *row) for row in rows)]
    )
    data = out.getvalue().encode()
    places = sorted({0, len(data), *(cut for cut in cuts if cut < len(data))})
    pieces = [data[a:b] for a, b in pairwise(places)]
    batch = collect(["-"], stdin=Drips(*pieces))
    assert batch.bad == []
    read = [(event.get("note", ""), event.get("source", "")) for event in batch.events]
    assert read == [tuple(row) for row in rows]


@given(st.lists(st.text(st.sampled_from('a,"1'), max_size=8), max_size=30))
def test_every_line_ends_once_whatever_it_holds(lines):
    reader = records.RecordAssembler()
    taken = [*reader.take(1, [line.encode() for line in lines]), *reader.finish()]
    covered = []
    for number, record in taken:
        inner = 0 if isinstance(record, str) else "".join(record).count("\n")
        covered += range(number, number + inner + 1)
    assert covered == sorted(set(covered))
    left_out = set(range(1, len(lines) + 1)) - set(covered)
    assert all(lines[number - 1] == "" for number in left_out)
