"""Faults in what brokers tell each other of what is suspended, of what they want, and of cells.

Owns the tables for `broker/core/suspension`, `broker/network/routing` and cells that are parted,
fail or are saved. Must not know how faults are run. Invariant: as for fault.Fault.
"""

from __future__ import annotations

from tests.planted.fault import part

ROUTING = ("tests/broker/network/routing",)
PLACED = ("tests/broker/core/network/test_cells_placed.py",)
PARTED = ("tests/broker/core/network/test_cell_parts.py",)
SAVED = ("tests/broker/core/network/test_cells.py",)
PLACEMENT = ("tests/broker/network/placement",)
REVISIONS = ("tests/broker/core/revision",)
SUSPENDED = ("tests/broker/core/suspension",)

FOLLOWING = part(
    "broker/core/suspension/agreement.py",
    r"""
standing-not-followed: a wish to begin anew does not reach the tasks
- shared.resume(sub, now)
+ ()

standing-again: a host that begins anew does the work again
- if row.exceeded:
+ if row.exceeded and row.resumed:
""",
    tests=SUSPENDED,
)

STANDING = part(
    "broker/network/placement/suspension.py",
    r"""
standing-of-before: what a host says from before a new beginning counts behind it
- and sub.resumed == row.resumed
+ and sub.resumed >= row.resumed

standing-unsaid: a host says nothing of what it has suspended
- if sub is not None and (sub.suspended or sub.resumed):
+ if sub is not None and sub.resumed:

standing-twice: a home tells its subscriber again of what it knows
- and not sub.suspended
+ and sub.task

standing-for-ever: home and host tell each other for ever of what the host has no more
- rows = [row for row in heard if row.key not in subscriptions]
+ rows = list(heard[:0])
""",
    tests=SUSPENDED,
)

WANTS = part(
    "broker/network/routing/wants.py",
    r"""
wants-overtaken: a word that was overtaken by a later one counts
- return word.number > before.number and word.types != before.types
+ return word.types != before.types

wants-again: the same word costs a record each time
- return word.number > before.number and word.types != before.types
+ return word.number > before.number

wants-kept: who wants nothing any more is kept for
- self._by_host.pop(word.host, None)
+ self._by_host.get(word.host)
""",
    tests=ROUTING,
)

PROBES = part(
    "broker/network/routing/probes.py",
    r"""
probe-wants-lost: beyond the first broker nobody hears what is wanted
- yield peer, Probe(broker, wave.number, wave.wants)
+ yield peer, Probe(broker, wave.number)

probe-wants-nothing: a probe for a first event says that its broker wants nothing
- if wants is not None:
+ if wants is not None or self._own.wants:

probe-hasty: a broker echoes before those beyond it have
- echoed = min((wave.echoed.get(name, 0) for name in others), default=wave.number)
+ echoed = max((wave.echoed.get(name, 0) for name in others), default=wave.number)

probe-old-session: what was echoed in a session that ended counts
- for by_peer in (wave.asked, wave.echoed, wave.asked_at):
+ for by_peer in (wave.asked, wave.asked_at):
""",
    tests=ROUTING,
)

FAILED = part(
    "broker/network/placement/homes.py",
    r"""
failed-for-ever: a cell that is placed where it failed is nowhere
- if _resumes(book, name, self._failed) or before.get(name) != one:
+ if before.get(name) != one:

failed-left-to: a cell that cannot begin elsewhere goes back to where it failed
- lost = cell.serving.broker == broker or self._is_lost(cell)
+ lost = cell.serving.broker == broker or self.is_away(cell.serving.broker)
""",
    tests=PLACED,
)

LOST = part(
    "broker/network/placement/homes.py",
    r"""
lost-at-once: a host that is out of reach for a moment has the cell no more
- if self._clock() - since >= HOST_LOST_MS:
+ if self._clock() > since:

lost-named: a host that names origins is not answered where they are known already
- self._mail.tell(host, cell_messages.Noted(one.which, one.life, one.origins))
+ ()

moved-for-ever: a move that comes to nothing is never given up
- if self._clock() - since >= MOVING_MS_MAX:
+ if self._clock() - since > MOVING_MS_MAX:
""",
    tests=PLACEMENT,
)

LEAVES = part(
    "broker/core/cells/cell_views.py",
    r"""
leaves-unseen: a cell that is about to go elsewhere is said to stay
- moving_to = leaves_to or (one.coming.broker if one.coming is not None else "")
+ moving_to = one.coming.broker if one.coming is not None else ""

leaves-refused: a cell that is about to go elsewhere says why it did not go there before
- reason="" if leaves_to else one.reason,
+ reason=one.reason,
""",
    tests=PLACED,
)

FURTHER = [
    *part(
        "broker/network/placement/hosts.py",
        r"""
saves-at-once: the state of a cell that is to go is saved before what is owed to it has come
- cell.reports.saver.ask(self._clock() + COME_FURTHER_MS)
+ cell.reports.saver.ask(self._clock())

saves-what-came: nobody is asked for what is owed to a cell that is to go
- self._lent.come_further(cell.me)
+ ()
""",
        tests=("tests/broker/network/placement/test_hosts.py",),
    ),
    *part(
        "broker/network/replication/progress.py",
        r"""
hurries-nobody: who hurries waits for what is owed as long as others
- due += [toward for toward in self._hurried if toward in self._owed]
+ ()

hurries-here-alone: who hurries is not heard beyond the next broker
- self.hurries[peer] = None
+ self.hurries.pop(peer, None)

hurries-for-ever: to who has hurried once all that is owed goes at once
- self._hurried = {peer: until for peer, until in self._hurried.items() if until >= now}
+ ()
""",
        tests=("tests/broker/network/replication/test_progress.py",),
    ),
]

HOSTS = part(
    "broker/network/placement/hosts.py",
    r"""
hosted-of-another-life: what a home says to a life that has ended counts in the next
- cell = self._of(home, one.which, one.life)
+ cell = self._of(home, one.which)

hosted-failed: a cell whose core failed goes on with what may be wrong
- self._cell_failed(cell.which, fault)
+ self._tell_failed(cell.me, fault)

hosted-unreachable: what a cell says is lost while there is no way to its home
- if home == self._lent.me or home in self._lent.via:
+ if home:
""",
    tests=PLACEMENT,
)

SAVING = part(
    "broker/network/placement/snapshot_pace.py",
    r"""
saved-too-early: an origin keeps for ever what came ahead of what was kept back
- if is_same and not self._is_owed(last, positions):
+ if is_same:

saved-in-vain: promises alone cost snapshots
- last.positions[origin][1] < min(position, self._event_at.get(origin, 0))
+ last.positions[origin][1] < max(position, self._event_at.get(origin, 0))
""",
    tests=SAVED,
)

GRAIN = part(
    "broker/core/networked/cell_parts.py",
    r"""
grain-by-inputs: what needs the same inputs is at one broker
- for bonds in (_definitions, _inputs) if message.alone else (_inputs,):
+ for bonds in (_inputs,):

grain-of-before: records of an earlier version come to other cells than it had
- for bonds in (_definitions, _inputs) if message.alone else (_inputs,):
+ for bonds in (_definitions, _inputs):

grain-too-many: what needs the same inputs is not even together where there are too many
- if len(parted) <= most:
+ if len(parted) <= most or bonds is _definitions:

grain-twice: a definition that several need runs for each
- return subscription.definitions
+ return subscription.definitions[:0]
""",
    tests=PARTED,
)

REVISED = part(
    "broker/network/placement/revisions.py",
    r"""
revised-while-moving: a text is taken up where the cell may be called back to an older state
- if term is None or cell is None or not cell.revisions or cell.coming is not None:
+ if term is None or cell is None or not cell.revisions:

revised-ahead: what was given out under the text before is found again under the new one
- if not is_late and self._lacks_results(name, term.life):
+ if not is_late and self._lacks_results(name, -1) is None:

revised-never: a host that never finds again what was given out keeps the old text
- is_late = self._clock() - term.since >= CATCH_UP_MS
+ is_late = self._clock() < term.since

revised-cancelled: what was cancelled begins again with a text
- keys = tuple([key for key in revision.keys if key in cell.keys])
+ keys = revision.keys

revised-again: a host is asked again and again
- return term if max(term.revision, term.asked) < cell.revisions[-1].number else None
+ return term if term.revision < cell.revisions[-1].number else None

revised-last-alone: of two texts a host that has neither is told the second alone
- if revision.number > term.revision:
+ if revision.number > term.asked - 1:
""",
    tests=PLACEMENT,
)

REVISIONS_KEPT = part(
    "broker/network/placement/book.py",
    r"""
apart-given: what is found under a text is given out before a snapshot has that
- (self.apart if waits or term is self.coming else others).append(result)
+ (self.apart if term is self.coming else others).append(result)

apart-coming: what a term that comes finds is given out although it may be called off
- (self.apart if waits or term is self.coming else others).append(result)
+ (self.apart if waits else others).append(result)

apart-unchanged: what a text has not changed waits for its snapshot as well
- revision.number <= result.revision and result.row[:2] in revision.keys
+ revision.number <= result.revision

apart-changed-next: what is found under a text waits for the next one, which is not there yet
- revision.number <= result.revision and result.row[:2] in revision.keys
+ result.row[:2] in revision.keys

apart-of-lost: what a lost process found under a text is kept for ever
- cell.end_run(term)
+ cell.end_run(None)

apart-of-others: what a run found that is over is given out with what goes on
- rows = [result for result in apart if result.run == cell.run]
+ rows = [result for result in apart if result.run]

apart-lost: what was set apart is never given out
- return fresh, self._take(cell, cell.set_apart(cell.serving, rows))
+ return fresh, []

apart-early: what is found under a later text is given out with the one before
- return fresh, self._take(cell, cell.set_apart(cell.serving, rows))
+ return fresh, self._take(cell, rows)

active-before-its-text: a subscription is active under the text before its last one
- fresh = [key for key in changed if key in cell.keys and not cell.is_revised(key)]
+ fresh = [key for key in changed if key in cell.keys]

settled-of-before: how far a text before is settled is said of the next
- return self.of.get(key) == cell.name and not cell.is_revised(key)
+ return self.of.get(key) == cell.name

caught-up-before-heard: a host of which nothing has come counts as the process before
- run = cell.serving.run if cell.serving.life == life else -1
+ run = cell.serving.run

first-without-text: a cell begins from nothing with a text that lacks what was changed
- cell.keys = [*keys, *[key for key in cell.keys if key not in keys]]
+ cell.keys = [*[key for key in cell.keys if key not in keys], *keys]
""",
    tests=(*PLACEMENT, *REVISIONS),
)

REVISED_AT_HOME = part(
    "broker/network/placement/homes.py",
    r"""
revised-standing: a subscription is suspended for what the text before did
- if 0 <= one.revision != cell.revision_asked:
+ if one.revision < -1:

revised-older: a host of an earlier version is asked for what it does not know
- if one.revision < 0 and cell.revisions and host != self._lent.me:
+ if one.revision < -1 and cell.revisions and host != self._lent.me:
""",
    tests=PLACEMENT,
)

REVISED_AT_HOST = part(
    "broker/network/placement/hosts.py",
    r"""
revised-out-of-order: a text counts twice, or without the one before
- if cell is None or said.revision.number != cell.reports.saver.revision + 1:
+ if cell is None:
""",
    tests=PLACEMENT,
)

GOING_ON = part(
    "broker/core/networked/cell_beginnings.py",
    r"""
goes-on-inactive: what may have missed its first events goes on
- if cell is None or not cell.active or cell.splits:
+ if cell is None or cell.splits:

goes-on-split: a cell whose windows are split gets a text that its origins do not have
- if cell is None or not cell.active or cell.splits:
+ if cell is None or not cell.active:

goes-on-begun: what the change before has begun counts as whole
- if any(key in keys for keys in began for key in replaced):
+ if any(key in keys for keys in began[:0] for key in replaced):

goes-on-without-text: a record of a version with one text in a cell comes to another cell
- return cell if has_all and not began else None
+ return cell if not began else None

goes-on-suspended: what has dropped its state is said to keep it
- for each in [each for each in running if each.suspended]:
+ for each in [each for each in running if each.suspended and each.resumed]:

goes-on-from-two: what two cells hold goes on in one of them
- if not names or len(dict.fromkeys(names)) > 1:
+ if not names:

goes-on-untold: records of an earlier version come to other cells than it had
- apart = [each for each in change.coming if self._is_apart(each)] if in_cells else []
+ apart = [each for each in change.coming if self._is_apart(each)]
""",
    tests=REVISIONS,
)

REVISING = part(
    "broker/network/placement/home_reports.py",
    r"""
revised-unmarked: what is found under a text counts as found under the one before
- self.results.revision = self.saver.revision = revision.number
+ self.saver.revision = revision.number

revised-unheard: a home is not told that its text was taken up
- self._standing_said = None
+ self._standing_said = self.standing()

revised-unconfirmed: a cell says for ever how it stands, once it was resumed
- self.confirmed = tuple([row for row in self.confirmed if row.key not in revision.keys])
+ self.confirmed = ()
""",
    tests=REVISIONS,
)

TEXTS = part(
    "broker/core/cells/cell_contents.py",
    r"""
begun-whole: a host refuses a text for the work of what runs in other cells
- asked = messages.SpecificationSubmitted(home, "", text, proven=True, only=hosted.keys)
+ asked = messages.SpecificationSubmitted(home, "", text, proven=True)

revised-whole: a host refuses a changed text for the work of what runs in other cells
- asked = messages.SpecificationSubmitted(client, "", text, proven=True, only=only)
+ asked = messages.SpecificationSubmitted(client, "", text, proven=True)
""",
    tests=("tests/broker/core/network/test_cell_texts.py",),
)

BEGUN_BEFORE = part(
    "broker/core/cells/cell_contents.py",
    r"""
begun-as-changed: a text begins suspended for what the next one did
- keys = [key for key in cell.keys if not cell.is_revised(key)]
+ keys = cell.keys
""",
    tests=REVISIONS,
)

SAID_BEFOREHAND = part(
    "broker/core/preview.py",
    r"""
kept-of-others: what newly uses a definition is said to keep what goes on for others
- for key in (*before.definitions, before.task)
-         if key in earlier.tasks
+ for key in earlier.tasks
""",
    tests=REVISIONS,
)

SAVED_REVISED = part(
    "broker/network/placement/snapshot_pace.py",
    r"""
revised-unsaved: a text is in force when the next snapshot would be due anyway
- if last is None or last.revision != self.revision:
+ if last is None:
""",
    tests=REVISIONS,
)

JOINED = ("tests/broker/core/revision/test_cells_joined.py",)

JOINING = part(
    "broker/core/networked/cell_beginnings.py",
    r"""
joins-inactive: a text joins a cell that has no snapshot, and that begins without it
- if cell.active and not cell.splits and name not in left:
+ if not cell.splits and name not in left:

joins-again: what has left a cell joins it while its host runs it as it was
- if cell.active and not cell.splits and name not in left:
+ if cell.active and not cell.splits:

joins-without-end: a cell is joined until no host has room for it
- if alike and len(cell.keys) + count <= MEMBERS_MAX:
+ if alike:

joins-before: a record of a version in which nothing joined a cell comes to another cell
- users = self._users(left) if message.apart else {}
+ users = self._users(left)
""",
    tests=JOINED,
)

JOINING_LATE = part(
    "broker/network/placement/revisions.py",
    r"""
joins-for-ever: what waits for an origin holds up the snapshots of others
- return [place for place, since in self._since.items() if now - since >= JOIN_MS_MAX]
+ return [place for place, since in self._since.items() if now - since < 0]
""",
    tests=JOINED,
)

NAMESAKES = part(
    "broker/core/cells/cell_contents.py",
    r"""
namesake-goes-on: what was cancelled goes on for what has its name
- if (subscriber, name) in installed:  # cancelled, of which this host has not heard
+ if (subscriber, name) not in installed:
""",
    tests=JOINED,
)

NAMESAKES_AT_HOME = part(
    "broker/network/placement/book.py",
    r"""
namesake-given: results of what was cancelled are given out to what has its name
- if self._is_of_before(result):
+ if self._is_of_before(result) and not result.row:

parted-all: who has joined a cell is taken out of it
- for keys in [each.keys for each in joined]:
+ for keys in [tuple(cell.keys)] if cell is not None else []:
""",
    tests=JOINED,
)

TABLE = [
    *FOLLOWING,
    *STANDING,
    *WANTS,
    *PROBES,
    *FAILED,
    *LEAVES,
    *FURTHER,
    *LOST,
    *HOSTS,
    *SAVING,
    *GRAIN,
    *REVISED,
    *REVISIONS_KEPT,
    *REVISED_AT_HOME,
    *REVISED_AT_HOST,
    *GOING_ON,
    *REVISING,
    *TEXTS,
    *BEGUN_BEFORE,
    *SAID_BEFOREHAND,
    *SAVED_REVISED,
    *JOINING,
    *JOINING_LATE,
    *NAMESAKES,
    *NAMESAKES_AT_HOME,
]
