"""The page at `/`: what a broker is doing, for a person who looks.

Owns the page. Must not know the broker: the page asks the same paths that anybody may ask.
Invariant: nothing comes from elsewhere, and what the broker tells is shown as text alone, as names
and values in it may be anybody's.
"""

from __future__ import annotations

import base64
import hashlib
from typing import Final

STYLE: Final = """
:root { color-scheme: light dark; --line: #8884; --good: #2a7d3f; --bad: #b3261e; }
body { font: 15px/1.5 system-ui, sans-serif; margin: 2rem auto; max-width: 62rem; padding: 0 1rem; }
h1 { font-size: 1.4rem; margin: 0; } h2 { font-size: 1.05rem; margin: 2rem 0 .4rem; }
table { border-collapse: collapse; width: 100%; }
th, td { border-bottom: 1px solid var(--line); padding: .25rem .6rem .25rem 0; text-align: left;
  overflow-wrap: anywhere; vertical-align: top; }
th { font-weight: 600; } .n { text-align: right; font-variant-numeric: tabular-nums; }
.good { color: var(--good); } .bad { color: var(--bad); } .none { opacity: .6; }
"""

SCRIPT: Final = """
"use strict";
const EVERY_MS = 2000, SHOWN = 20;
const at = (id) => document.getElementById(id);
const cell = (text, kind, name) => {
  const made = document.createElement(kind || "td");
  made.textContent = text === null || text === undefined ? "" : String(text);
  if (name) made.className = name;
  return made;
};
const row = (cells) => {
  const made = document.createElement("tr");
  for (const one of cells) {
    made.append(one instanceof Node ? one : cell(one, "td", typeof one === "number" ? "n" : ""));
  }
  return made;
};
const fill = (id, rows, none) => {
  at(id).replaceChildren(...(rows.length ? rows : [row([cell(none, "td", "none")])]));
};
const counts = (told) => Object.entries(told || {}).map(([name, count]) => row([name, count]));
const time = (ms) => new Date(ms).toISOString().replace("T", " ").slice(0, 19);

function showStatus(told) {
  const events = told.events, dropped = Object.values(events.dropped).reduce((a, b) => a + b, 0);
  document.title = at("name").textContent = told.broker;
  at("since").textContent = `Headwater ${told.version}, up since ${time(told.since)} UTC`;
  fill("events", [row([events.received, events.out, events.filtered, events.held, dropped,
    events.results])], "");
  fill("dropped", counts(events.dropped), "none");
  fill("notes", counts(events.notes), "none");
  const network = told.network, links = network ? network.links : {};
  fill("links", Object.entries(links).map(([name, one]) => {
    const waits = Object.entries(network.waits).filter(([, origin]) => origin === name);
    const state = cell(one.state, "td", one.state === "up" ? "good" : "bad");
    return row([name, state, waits.map(([type]) => type).join(", ")]);
  }), "this broker links to no other");
}

function showReady(told) {
  const missing = told.missing.join("; ");
  at("ready").textContent = told.ready ? "ready" : `not ready: ${missing}`;
  at("ready").className = told.ready ? "good" : "bad";
}

function showSubscriptions(told) {
  fill("subscriptions", told.subscriptions.map((one) =>
    row([one.subscription, one.subscriber, one.actor, one.seq, one.state, one.results])),
  "none; `headwater submit SPEC.hw` installs one");
}

async function look() {
  try {
    const [ready, status, listed] = await Promise.all(
      ["/readyz", "/v1/status", "/v1/subscriptions"].map(async (path) =>
        (await fetch(path, {signal: AbortSignal.timeout(10000)})).json()));
    showStatus(status);
    showReady(ready);
    showSubscriptions(listed);
  } catch (error) {
    at("ready").textContent = "the broker does not answer";
    at("ready").className = "bad";
  }
  setTimeout(look, EVERY_MS);
}

function showResult(line) {
  const told = JSON.parse(line);
  if (told.errors) throw new Error("cut off");
  const said = {...told.group, ...told.values};
  const shown = row([time(told.end), told.subscription, told.actor, JSON.stringify(said)]);
  const table = at("results");
  if (table.querySelector(".none")) table.replaceChildren();
  table.prepend(shown);
  while (table.rows.length > SHOWN) table.lastChild.remove();
}

async function follow() {
  try {
    const answer = await fetch("/v1/results");
    const reader = answer.body.pipeThrough(new TextDecoderStream()).getReader();
    let rest = "";
    for (;;) {
      const {value, done} = await reader.read();
      if (done) break;
      const lines = (rest + value).split("\\n");
      rest = lines.pop();
      for (const line of lines.slice(-SHOWN)) if (line) showResult(line);
    }
  } catch (error) { /* asked again below */ }
  setTimeout(follow, EVERY_MS);
}

fill("results", [], "none since this page was opened");
look();
follow();
"""

PAGE: Final = f"""<!doctype html>
<html lang="en">
<meta charset="utf-8">
<meta name="viewport" content="width=device-width">
<title>Headwater</title>
<style>{STYLE}</style>
<h1 id="name">Headwater</h1>
<p><strong id="ready" aria-live="polite"></strong> <span id="since"></span></p>
<h2>Subscriptions</h2>
<table><thead><tr><th>name<th>subscriber<th>actor<th class="n">seq<th>state<th class="n">results
</thead><tbody id="subscriptions"></tbody></table>
<h2>Results</h2>
<table><thead><tr><th>end (UTC)<th>subscription<th>actor<th>group and values
</thead><tbody id="results"></tbody></table>
<h2>Events</h2>
<table><thead><tr><th class="n">received<th class="n">wanted<th class="n">filtered<th class="n">held
<th class="n">dropped<th class="n">results</thead><tbody id="events"></tbody></table>
<h2>Dropped, by reason</h2>
<table><tbody id="dropped"></tbody></table>
<h2>Notes</h2>
<table><tbody id="notes"></tbody></table>
<h2>Links</h2>
<table><thead><tr><th>broker<th>state<th>types that wait for it</thead><tbody id="links"></tbody>
</table>
<script>{SCRIPT}</script>
</html>
"""


def _digest(text: str) -> str:
    return base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()


# Only what stands on the page runs, and it asks nobody but this broker.
POLICY: Final = (
    f"default-src 'none'; style-src 'sha256-{_digest(STYLE)}';"
    f" script-src 'sha256-{_digest(SCRIPT)}';"
    " connect-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
)
