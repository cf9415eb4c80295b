"""The page on the output log: a broker gets its readings, and each command prints what it shows."""

import asyncio
import json
import re
import shlex
import subprocess
import sys
import time
import urllib.error
import urllib.request
from pathlib import Path

import pytest

from headwater.cli import main
from tests.broker.running import CONFIG, PATIENCE_S, RunningBroker, client
from tests.test_docs import FENCE, ROOT, blocks, saved

PAGE = "docs/output-log.md"
SHOWN = "http://127.0.0.1:8080"
# What differs from run to run; the page shows one of each.
CHANGING = {
    r'"epoch":"[0-9a-f]{16}"': '"epoch":"3f6c1a90d27be854"',
    r'"id":"[0-9a-f]{32}"': '"id":"5b0c1d5e8a7f4c6290e3b1a4d8f7c265"',
    r'"acked_at":\d{13}': '"acked_at":1700000200000',
    r'"detected_at":\d{13}': '"detected_at":1700000190000',
}


def commands() -> list[tuple[str, str]]:
    """(command, what it prints), in order."""
    found = []
    for block in blocks(PAGE, "console"):
        for part in re.split(r"^\$ ", block, flags=re.MULTILINE)[1:]:
            line, _, printed = part.partition("\n")
            found.append((line, printed))
    return found


def steady(text: str) -> str:
    for changing, shown in CHANGING.items():
        text = re.sub(changing, shown, text)
    return text


def curl(words: list[str], url: str) -> str:
    """What curl prints, of whose options the page uses one."""
    method = words[words.index("-X") + 1] if "-X" in words else "GET"
    request = urllib.request.Request(words[-1].replace(SHOWN, url), method=method)
    try:
        with urllib.request.urlopen(request, timeout=PATIENCE_S) as answer:
            return answer.read().decode() + "\n"
    except urllib.error.HTTPError as error:
        with error:
            return error.read().decode() + "\n"


def feed(broker: RunningBroker, folder: Path) -> None:
    """Install the specification, send the readings, and wait for their results."""
    text = (folder / "frost.hw").read_bytes()
    status, reply = broker.get("/v1/subscriptions?client=station-team", "POST", text)
    assert status == 200, reply

    async def publish() -> None:
        async with client(broker.port()) as one:
            for line in (folder / "readings.jsonl").read_text().splitlines():
                source = json.loads(line)["source"]
                await one.publish(f"headwater/events/AirTemp/{source}", line, qos=1)

    asyncio.run(publish())
    deadline_s, end = time.monotonic() + PATIENCE_S, 0
    while end < 3:
        assert time.monotonic() < deadline_s
        end = broker.get(f"/v1/log/offsets?after={end}&wait=5")[1]["end"]


@pytest.mark.timeout(60)
def test_each_command_prints_what_the_page_shows(tmp_path, monkeypatch, capsys):
    saved(PAGE, tmp_path)
    monkeypatch.chdir(tmp_path)
    with RunningBroker(tmp_path, CONFIG, f"--set=broker.data_dir={tmp_path}/data") as broker:
        url = f"http://127.0.0.1:{broker.port('http')}"
        monkeypatch.setenv("HEADWATER_BROKER", url)
        feed(broker, tmp_path)
        for line, shown in commands():
            words = shlex.split(line)
            if words[0] == "headwater":
                assert main(words[1:]) == 0
                printed = capsys.readouterr().out
            elif words[0] == "curl":
                printed = curl(words, url)
            else:
                assert words[0] == "python"
                arguments = [sys.executable, *words[1:-1], url]
                printed = subprocess.run(
                    arguments, capture_output=True, text=True, check=True, timeout=PATIENCE_S
                ).stdout
            assert steady(printed) == shown, line
        assert broker.end() == 0


def test_the_page_shows_every_way_to_ask():
    """The test above sees nothing where the form of the page has changed."""
    lines = [line for line, _ in commands()]
    assert len(lines) >= 10
    for word in (
        "tail --from",
        "/v1/log?",
        "offsets?after",
        "ack?",
        "consumers",
        "ts_at",
        "after?",
    ):
        assert any(word in line for line in lines), word
    fences = [match[1] for match in FENCE.finditer((ROOT / PAGE).read_text(encoding="utf-8"))]
    assert {"headwater", "json", "console", "python"} <= {*fences}
