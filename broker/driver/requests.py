"""Requests on their way to the core: texts are checked in a thread, one at a time.

Owns the line of requests and the thread. Must not judge a text: `language` does. Invariant:
requests reach the core in the order of arrival; the line is bounded, and who finds it full is told.

Checking a long text takes seconds, which the event loop must not wait for. What arrives while one
is checked waits too, but not for longer than `HOLD_S_MAX`: so that events sent right after a
submission are seen by it, and a large text does not stop a broker.
"""

import asyncio
import logging
from collections import deque
from collections.abc import Callable, Coroutine, Mapping
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from typing import Any

import msgspec
from msgspec.structs import replace

from broker.core import refusals
from broker.core.effects import Acknowledge, Effect, Reply
from broker.core.installer import Asker, reader_of
from broker.core.messages import (
    CancelRequested,
    Message,
    RequestRefused,
    ResumeRequested,
    SpecificationSubmitted,
)
from broker.core.preview import Preview
from broker.core.recovery.durable import DurableBroker
from broker.core.recovery.durable_state import RestorableBroker
from broker.core.refusals import Answer, Trouble
from broker.driver.mqtt_face import EndRequested, ListRequested, PreviewRequested, Request
from broker.driver.runner import Core, Runner
from broker.engine.limits import Limits
from broker.http.pages.value_types import Standing, ValueTypes
from broker.network.replication.absence_watch import waiting_for
from broker.remote.desk import CallDesk
from broker.remote.functions import NetworkFunctions
from broker.remote.home_copies import HomeCopies
from broker.remote.question import row_of
from broker.remote.states import StandInState
from broker.remote.subscriptions import NetworkSubscriptions
from broker.rights.contents import beyond_quota
from broker.rights.current import CurrentRights
from broker.rights.homes import EndRequest, visible
from broker.rights.judge import Principal, RightsJudge
from broker.rights.quotas import QuotaLedger
from broker.rights.requests import Need
from broker.rights.submission import not_granted, speaker_for, troubles
from broker.store import Store, StoredCatalogue
from language import Checked, check_text

_NEEDS: dict[type[Any], Need] = {
    SpecificationSubmitted: "submit",
    CancelRequested: "cancel",
    ResumeRequested: "cancel",
    EndRequested: "cancel",
    ListRequested: "list",
}
NOBODY = Principal(None)
WAITING_MAX = 100  # requests come from people and scripts
WAITING_CHARS_MAX = 8_388_608  # of all texts that wait
HOLD_S_MAX = 1.0

logger = logging.getLogger(__name__)


class Requests:
    """The line; `serve` is its task. `rights` judge what each text and each request means."""

    def __init__(
        self, runner: Runner, limits: Limits, rights: CurrentRights, quotas: QuotaLedger
    ) -> None:
        self._runner = runner
        self._rights = rights
        self._quotas = quotas
        self._limits = limits
        self._reader = reader_of(runner.core.options.tables)
        me, core = runner.core.options.name, runner.core
        assert isinstance(core, DurableBroker | RestorableBroker)
        self.network = NetworkSubscriptions(me, runner, self._listed)
        self.functions = NetworkFunctions(me, runner, core)
        self._asking: set[asyncio.Task[None]] = set()
        self._waiting: deque[tuple[Request, Principal]] = deque()
        self._waiting_chars = 0
        self._arrived = asyncio.Event()
        self._thread = ThreadPoolExecutor(1, thread_name_prefix="check")
        self._holding = False
        self._patience: asyncio.TimerHandle | None = None
        self._stand_in: Callable[[], StandInState | None] = lambda: None

    def link(
        self, calls: CallDesk, copies: HomeCopies, stand_in: Callable[[], StandInState | None]
    ) -> None:
        """Ask the other brokers from now on; `stand_in` returns how that of this home follows."""
        self.network.link(calls, copies)
        self.functions.link(calls)
        self._stand_in = stand_in

    def put(self, request: Request, asker: Principal = NOBODY) -> None:
        """Take a request of `asker`, or refuse it where too many wait."""
        size = _size(request)
        if len(self._waiting) >= WAITING_MAX or self._waiting_chars + size > WAITING_CHARS_MAX:
            self._runner.put(_refused(request, refusals.BUSY))
            return
        self._waiting.append((request, asker))
        self._waiting_chars += size
        self._arrived.set()
        self._hold()

    async def serve(self) -> None:
        """Hand on what comes, until cancelled."""
        try:
            while True:
                await self._arrived.wait()
                while self._waiting:
                    # Taken off the line only when it is done: until then it fills its place.
                    request, asker = self._waiting[0]
                    message = await self._ready(request)
                    self._off_the_line()
                    # Judged now, as the rights may have been read again while it waited.
                    self._hand_on(request, message, asker)
                self._arrived.clear()
                self._let_go()
        finally:
            for task in self._asking:
                task.cancel()
            self._let_go()
            self._thread.shutdown(wait=False, cancel_futures=True)

    async def _ready(self, request: Request) -> Message | ListRequested | EndRequested:
        """Prepare a request for the core, which may be told of it then."""
        while True:
            functions = self._runner.core.functions
            message = await self._prepared(request, functions)
            await self._runner.running()
            # A text is installed with the functions that it was checked with, or checked again.
            if functions is self._runner.core.functions:
                return message

    def _off_the_line(self) -> None:
        self._waiting_chars -= _size(self._waiting.popleft()[0])

    def _hand_on(
        self, request: Request, message: Message | ListRequested | EndRequested, asker: Principal
    ) -> None:
        """Have the core handle what a request came to, or answer what the core need not know."""
        judge = self._rights.judge
        need = _NEEDS.get(type(message))
        if need is not None and not judge.allows(asker, need):
            refused = [not_granted(asker, f"ask to {need}", "submit_as")]
            self._runner.perform(_answered(message, refusals.refused(refused).payload()))
        elif isinstance(message, EndRequested):
            wanted = EndRequest(asker, message.client, message.name)
            answer = self.network.end(
                lambda: self._rights.judge, wanted, message.done, message.home
            )
            self._answer_later(message, answer)
        elif isinstance(message, ListRequested) and message.network:
            self._answer_later(message, self.network.listing(judge, asker))
        elif isinstance(message, ListRequested):
            self._runner.perform(self._told(message, asker))
        elif isinstance(request, PreviewRequested) and isinstance(message, SpecificationSubmitted):
            self._preview(message, asker)
        else:
            self._judge(message, asker)

    def _answer_later(
        self,
        request: ListRequested | EndRequested,
        answer: Coroutine[Any, Any, dict[str, Any]],
    ) -> None:
        """Answer once other brokers have, without keeping the line waiting."""
        if len(self._asking) >= WAITING_MAX:
            answer.close()
            self._runner.put(_refused(request, refusals.BUSY))
            return

        async def reply() -> None:
            try:
                payload = msgspec.json.encode({"ok": True} | await answer)
            except Exception:
                logger.exception("a request for the whole network failed")
                self._runner.put(_refused(request, refusals.DEFECT))
            else:
                self._runner.perform(_answered(request, payload))

        task = asyncio.create_task(reply(), name="network request")
        self._asking.add(task)
        task.add_done_callback(self._asking.discard)

    def _current(self) -> RightsJudge:
        return self._rights.judge

    def _judge(self, message: Message, asker: Principal) -> None:
        """Have the core handle a request, but for a text of which the asker may not do all."""
        judge = self._rights.judge
        if isinstance(message, CancelRequested | ResumeRequested):
            installed = self._runner.core.subscriptions
            client = speaker_for(judge, asker, message.client, message.name, installed)
            if client != message.client:
                message = replace(message, client=client, proven=True)
        elif isinstance(message, SpecificationSubmitted):
            refused = self._not_allowed(message, asker)
            if refused:
                self._runner.perform(_answered(message, refusals.refused(refused).payload()))
                return
        self._runner.handle(message)

    def _not_allowed(self, message: SpecificationSubmitted, asker: Principal) -> list[Trouble]:
        """Return what of a text the asker may not do, or is beyond the asker's quota."""
        text = None if message.checked is None else message.checked.specification
        if text is None:
            return []
        refused = troubles(self._rights.judge, asker, text)
        if refused:
            return refused
        installed, quota = self._runner.core.subscriptions, self._quotas.of_user(asker.user)
        return beyond_quota(asker, text, installed, quota, self._limits)

    def _preview(self, message: SpecificationSubmitted, asker: Principal) -> None:
        """Answer what a submission would change; the core is not told."""
        refused = self._not_allowed(message, asker)
        answer: Preview | Answer = refusals.refused(refused)
        if not refused:
            core = self._runner.core
            broker = core.core if isinstance(core, DurableBroker) else core
            words = (message.text, message.checked, Asker(message.client, message.proven))
            answer = broker.installer.preview(*words, broker.options)
        self._runner.perform(_answered(message, answer.payload()))

    async def _prepared(
        self, request: Request, functions: Mapping[str, Any]
    ) -> Message | ListRequested | EndRequested:
        if isinstance(request, PreviewRequested):
            request = request.submission
        if not isinstance(request, SpecificationSubmitted):
            return request
        if len(request.text) > self._limits.specification_bytes_max:
            return request
        loop = asyncio.get_running_loop()
        try:
            check = partial(check_text, request.text, functions=functions, tables=self._reader)
            checked: Checked = await loop.run_in_executor(self._thread, check)
        except Exception:
            logger.exception("checking a text failed")
            return _refused(request, refusals.DEFECT)
        return replace(request, checked=checked)

    def value_types(self, store: Store) -> ValueTypes:
        """Tell the types of what subscriptions assign, by their texts in `store`."""
        core = self._runner.core

        def standing(name: str) -> Standing:
            installed = core.catalogue.subscriptions.values()
            return tuple((each.subscriber, each.seq) for each in installed if each.name == name)

        def check(text: str) -> Checked:
            return check_text(text, functions=core.functions, tables=self._reader)

        return ValueTypes(standing, StoredCatalogue(store).all, check)

    def visible(self, asker: Principal) -> list[dict[str, Any]]:
        """List the subscriptions of which `asker` may know."""
        judge = self._rights.judge
        return [entry for entry in self._listed() if visible(judge, asker, entry)]

    def _listed(self) -> list[dict[str, Any]]:
        return listed(self._runner.core, self._stand_in())

    def _told(self, request: ListRequested, asker: Principal) -> list[Effect]:
        """The subscriptions, in answer to whom they were asked by."""
        answer = msgspec.json.encode({"ok": True, "subscriptions": self.visible(asker)})
        return _answered(request, answer)

    def _hold(self) -> None:
        """Once for the whole line, so that many texts do not add up."""
        if self._patience is None:
            self._holding = True
            self._runner.hold()
            loop = asyncio.get_running_loop()
            self._patience = loop.call_later(HOLD_S_MAX, self._release)

    def _release(self) -> None:
        if self._holding:
            self._holding = False
            self._runner.release()

    def _let_go(self) -> None:
        """The line is empty."""
        if self._patience is not None:
            self._patience.cancel()
            self._patience = None
        self._release()


def _size(request: Request) -> int:
    if isinstance(request, ListRequested):
        return 0
    if isinstance(request, PreviewRequested):
        request = request.submission
    return len(request.text) if isinstance(request, SpecificationSubmitted) else len(request.name)


def listed(core: Core, stand_in: StandInState | None = None) -> list[dict[str, Any]]:
    """All that are at home here; `waits_for` are brokers that are away and that it waits for.

    `shares_with`: with how many others one uses a definition; `stand_in`: of this home.
    """
    waiting: dict[tuple[str, str], list[str]] = {}
    elsewhere: Mapping[tuple[str, str], str] = {}
    if isinstance(core, DurableBroker) and core.options.networked:
        elsewhere = core.network.book.of
        for broker, keys in waiting_for(core.network, core.now).items():
            for key in keys:
                waiting.setdefault(key, []).append(broker)
    further: dict[str, str] = {}
    if stand_in is not None:
        further = {"stand_in": stand_in.broker, "stand_in_state": stand_in.state}
    sharing = core.catalogue.sharing(elsewhere)
    return [
        {
            **row_of(subscription),
            **({"shares_with": others} if (others := sharing.get(subscription.key)) else {}),
            **({"waits_for": waiting[subscription.key]} if subscription.key in waiting else {}),
            **further,
        }
        for subscription in core.subscriptions
    ]


def _answered(request: Any, answer: bytes) -> list[Effect]:
    """Answer a request without asking the core."""
    tokens = () if request.token is None else (request.token,)
    return [Reply(request.reply_to, request.client, request.request, answer), Acknowledge(tokens)]


def _refused(request: Request, code: str) -> RequestRefused:
    if isinstance(request, PreviewRequested):
        request = request.submission
    return RequestRefused(request.client, request.request, code, request.reply_to, request.token)
