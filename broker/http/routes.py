"""The one table of routes: what can be asked, with what, and what comes back.

Owns the paths, methods, parameters and response shapes; the application, the OpenAPI description
and the tests read it. Must not know how a request is answered. Invariant: a path that is served
stands here, and one that stands here is served.
"""

from broker.http.log_routes import LOG_ROUTES, LOG_SCHEMAS
from broker.http.plan_shapes import PLAN_SCHEMAS
from broker.http.route import COUNT, NAMES, TEXT, Answer, Parameter, Route, Schema, shape_of

_UNREACHED: Schema = {
    "type": "array",
    "items": shape_of("broker reason", broker=TEXT, reason=TEXT, stand_in=TEXT, taken_over_by=TEXT),
}
_OF_TASKS: Schema = {
    "type": "array",
    "items": shape_of("task lines", task=TEXT, lines=NAMES),
}
SCHEMAS: dict[str, Schema] = {
    "Diagnostic": shape_of(
        "message",
        code=TEXT,
        message=TEXT,
        line={"type": ["integer", "null"], "minimum": 1},
        column={"type": ["integer", "null"], "minimum": 1},
        hint=TEXT,
        seq=COUNT,
        event=COUNT,
    ),
    "Problem": shape_of(
        "ok errors",
        ok={"type": "boolean", "enum": [False]},
        accepted=COUNT,
        errors={"type": "array", "items": {"$ref": "#/components/schemas/Diagnostic"}},
    ),
    "Reply": shape_of(
        "ok",
        ok={"type": "boolean", "enum": [True]},
        subscriptions=NAMES,
        definitions=NAMES,
        home=TEXT,
        state={"type": "string", "enum": ["accepted", "active", "ended"]},
    ),
    "TakenOver": shape_of(
        "ok home subscriptions begun refused",
        ok={"type": "boolean", "enum": [True]},
        home=TEXT,
        subscriptions={"type": "array", "items": NAMES},
        begun={"type": "array", "items": NAMES},
        refused={
            "type": "array",
            "items": {"type": "object", "required": ["subscriptions", "reason"]},
        },
    ),
    "Preview": shape_of(
        "ok dry_run subscriptions ends bounds travels",
        ok={"type": "boolean", "enum": [True]},
        dry_run={"type": "boolean", "enum": [True]},
        subscriptions={
            "type": "array",
            "items": shape_of(
                "subscription subscriber change keeps begins",
                subscription=TEXT,
                subscriber=TEXT,
                change={"type": "string", "enum": ["new", "same", "changed"]},
                keeps=NAMES,
                begins=NAMES,
            ),
        },
        ends=NAMES,
        bounds=_OF_TASKS,
        travels=_OF_TASKS,
    ),
    "Published": shape_of("ok accepted", ok={"type": "boolean", "enum": [True]}, accepted=COUNT),
    "Subscription": shape_of(
        "subscription subscriber state",
        subscription=TEXT,
        subscriber=TEXT,
        actor=TEXT,
        seq=COUNT,
        state=TEXT,
        results=COUNT,
        client=TEXT,
        since={"type": "integer"},
        ends={"type": "integer"},
        waits_for=NAMES,
        home=TEXT,
        away={"type": "boolean"},
        stand_in=TEXT,
        stand_in_state=TEXT,
    ),
    "Subscriptions": shape_of(
        "subscriptions",
        subscriptions={"type": "array", "items": {"$ref": "#/components/schemas/Subscription"}},
        unreached=_UNREACHED,
    ),
    **PLAN_SCHEMAS,
    "Network": shape_of(
        "broker now brokers links neighbours own kept_back",
        broker=TEXT,
        now={"type": "integer"},
        brokers={"type": "array", "items": {"type": "object"}},
        links={"type": "array", "items": {"type": "object"}},
        neighbours={"type": "object", "additionalProperties": {"type": "object"}},
        own={"type": "array", "items": {"type": "object"}},
        kept_back={"type": "object", "additionalProperties": COUNT},
    ),
    "Health": shape_of("healthy", healthy={"type": "boolean"}),
    "Readiness": shape_of("ready missing", ready={"type": "boolean"}, missing=NAMES),
    "Status": shape_of(""),
    "Result": shape_of("subscription", subscription=TEXT),
    "Reload": shape_of(
        "ok",
        ok={"type": "boolean", "enum": [True]},
        users=COUNT,
        tokens=COUNT,
        clients_closed=COUNT,
        subscriptions_stopped=COUNT,
        stopped=NAMES,
    ),
    "Invite": shape_of(
        "ok code holds_s", ok={"type": "boolean", "enum": [True]}, code=TEXT, holds_s=COUNT
    ),
    "Grant": shape_of("ok sealed", ok={"type": "boolean", "enum": [True]}, sealed=TEXT),
    "Functions": shape_of(
        "functions brokers unreached",
        functions={
            "type": "array",
            "items": shape_of(
                "file digest functions giver broker since size_bytes callers",
                file=TEXT,
                digest=TEXT,
                functions=NAMES,
                giver=TEXT,
                broker=TEXT,
                since={"type": "integer"},
                size_bytes=COUNT,
                callers=NAMES,
            ),
        },
        brokers={
            "type": "array",
            "items": shape_of(
                "broker runs lacks faults",
                broker=TEXT,
                runs={"type": "boolean"},
                lacks=NAMES,
                faults={"type": "object", "additionalProperties": TEXT},
            ),
        },
        unreached=_UNREACHED,
    ),
    "GivenFunctions": shape_of(
        "ok file digest functions changed unreached",
        ok={"type": "boolean", "enum": [True]},
        file=TEXT,
        digest=TEXT,
        functions=NAMES,
        changed={"type": "boolean"},
        unreached=_UNREACHED,
    ),
    "RemovedFunctions": shape_of(
        "ok file unreached",
        ok={"type": "boolean", "enum": [True]},
        file=TEXT,
        unreached=_UNREACHED,
    ),
    "OpenApi": shape_of("openapi", openapi=TEXT),
    "Text": TEXT,
    **LOG_SCHEMAS,
}


_CLIENT = Parameter("client", "who asks, where no users are configured; else it is the user")
_NETWORK = Parameter("network", "1: of all brokers of the network that can be reached")
_NAMED = (
    Parameter("name", "the subscription's name; `/` in it as %2F", "path"),
    _CLIENT,
    Parameter("network", "1: wherever in the network its home is"),
    Parameter("home", "the broker that is its home, where that is another"),
)
_FILE = Parameter("name", "the file's name, without `.py`", "path")
_NDJSON = "application/x-ndjson"

ROUTES: tuple[Route, ...] = (
    Route(
        "GET",
        "/healthz",
        "healthz",
        "Whether the process is alive",
        {200: Answer("it is", "Health"), 503: Answer("it has failed", "Health")},
    ),
    Route(
        "GET",
        "/readyz",
        "readyz",
        "Whether clients are served, and what is missing otherwise",
        {200: Answer("they are", "Readiness"), 503: Answer("not yet", "Readiness")},
    ),
    Route(
        "GET",
        "/metrics",
        "metrics",
        "The ledger, for Prometheus",
        {200: Answer("text exposition format", "Text", "text/plain")},
    ),
    Route(
        "GET",
        "/v1/status",
        "status",
        "What this broker is doing, or in short what all brokers of the network do",
        {200: Answer("as JSON; of the network `brokers` and `unreached`", "Status")},
        parameters=(_NETWORK,),
    ),
    Route(
        "POST",
        "/v1/events",
        "publish",
        "Publish events: one, an array, or one on each line; answered once they are kept",
        {
            200: Answer("all of them are in the journal", "Published"),
            403: Answer("some may not be published by this user; none was"),
            408: Answer("the body did not come in time"),
            413: Answer("the body is too long"),
            415: Answer("the body is of another type, or is packed"),
            422: Answer("some are refused; `accepted` of the others were taken"),
            503: Answer("too many wait for the journal"),
        },
        parameters=(
            Parameter("type", "the type of events that name none"),
            Parameter("source", "the source of events that name none"),
        ),
        body="events",
        media=("application/json", _NDJSON),
    ),
    Route(
        "GET",
        "/v1/subscriptions",
        "list_subscriptions",
        "The subscriptions at home here, or in the whole network",
        {200: Answer("in the order of their installation", "Subscriptions")},
        parameters=(_NETWORK,),
    ),
    Route(
        "POST",
        "/v1/subscriptions",
        "submit",
        "Check a specification and install all of it, or nothing",
        {
            200: Answer("accepted, or there already; the list tells when it is active", "Reply"),
            400: Answer("a parameter is too long"),
            408: Answer("the body did not come in time"),
            413: Answer("the text is too long"),
            415: Answer("the body is not text/plain, or is packed"),
            422: Answer("faulty; every error with its place"),
        },
        parameters=(_CLIENT,),
        body="a specification",
    ),
    Route(
        "POST",
        "/v1/preview",
        "preview",
        "Tell what installing a specification would change, and change nothing",
        {
            200: Answer("what begins, goes on and ends; bounds; what would travel", "Preview"),
            400: Answer("a parameter is too long"),
            408: Answer("the body did not come in time"),
            413: Answer("the text is too long"),
            415: Answer("the body is not text/plain, or is packed"),
            422: Answer("it would be refused; every error with its place"),
        },
        parameters=(_CLIENT,),
        body="a specification",
    ),
    Route(
        "DELETE",
        "/v1/subscriptions/{name}",
        "cancel",
        "End a subscription",
        {
            200: Answer("ended", "Reply"),
            400: Answer("a parameter is too long"),
            404: Answer("there is none of that name to end"),
            409: Answer("there are several of that name, at different homes"),
            504: Answer("its home cannot be asked, or has not confirmed it"),
        },
        parameters=_NAMED,
    ),
    Route(
        "POST",
        "/v1/subscriptions/{name}/resume",
        "resume",
        "Begin a suspended subscription anew",
        {
            200: Answer("it runs again, from now on", "Reply"),
            400: Answer("a parameter is too long"),
            404: Answer("there is none of that name that is suspended"),
            409: Answer("there are several of that name, at different homes"),
            504: Answer("its home cannot be asked, or has not confirmed it"),
        },
        parameters=_NAMED,
    ),
    Route(
        "DELETE",
        "/v1/brokers/{name}",
        "forget",
        "Have no broker wait for this one any more, as it will not come back",
        {
            200: Answer("it is forgotten, here and wherever links lead", "Reply"),
            404: Answer("no other broker of that name is known"),
        },
        parameters=(Parameter("name", "the broker's name; `/` in it as %2F", "path"),),
    ),
    Route(
        "POST",
        "/v1/brokers/{name}/take-over",
        "take_over",
        "Take over the subscriptions of a home that is lost, as its stand-in",
        {
            200: Answer("they go on here; `refused` names those that do not", "TakenOver"),
            404: Answer("no broker that can be reached has a copy of that home"),
            409: Answer("it can be reached, or another broker has a later copy"),
        },
        parameters=(
            Parameter("name", "the home's name; `/` in it as %2F", "path"),
            Parameter("force", "1: also where it can be reached, or another has a later copy"),
            _CLIENT,
        ),
    ),
    Route(
        "GET",
        "/v1/network",
        "network",
        "The brokers and links of the network, and what goes over the links of this one",
        {
            200: Answer("as this broker knows it", "Network"),
            409: Answer("this broker has no links"),
        },
    ),
    Route(
        "GET",
        "/v1/plan",
        "plan",
        "Which task runs where in the network, why there, and what travels for it",
        {
            200: Answer("as this broker knows it", "Plan"),
            409: Answer("no coordinator decides here where tasks run"),
        },
    ),
    Route(
        "POST",
        "/v1/drain",
        "drain",
        "Have all tasks that run here go elsewhere, and take none up",
        {
            200: Answer("they go as soon as others have room", "Reply"),
            409: Answer("no coordinator decides here where tasks run"),
        },
    ),
    Route(
        "DELETE",
        "/v1/drain",
        "undrain",
        "Take tasks up again",
        {
            200: Answer("they may come", "Reply"),
            409: Answer("no coordinator decides here where tasks run"),
        },
    ),
    Route(
        "POST",
        "/v1/reload",
        "reload",
        "Take up users, tokens, rights, certificates and secrets as their files say now",
        {
            200: Answer("they are in force; clients and subscriptions were judged again", "Reload"),
            422: Answer("a file is faulty; every error with its place, and nothing was changed"),
        },
    ),
    Route(
        "POST",
        "/v1/invites",
        "invite",
        "Make a code by which one broker may join the network, within ten minutes",
        {
            200: Answer("the code, which is a secret", "Invite"),
            409: Answer("this broker cannot admit others as it is configured, and why"),
            422: Answer("the address is none"),
        },
        parameters=(
            Parameter("address", "where the new broker asks; else as this request's `Host` says"),
            Parameter("trusted", "the new broker gets the key of the authority, too"),
        ),
    ),
    Route(
        "POST",
        "/v1/joins",
        "join",
        "Ask for what a new broker needs, with a code; `headwater join` does",
        {
            200: Answer("it is admitted; all that it needs, sealed", "Grant"),
            409: Answer(
                "it is not admitted, and why: the code is used, over or unknown, or a name"
            ),
            413: Answer("this is no request to join, as it is too long"),
            422: Answer("this is no request to join"),
        },
        body="a sealed request",
    ),
    Route(
        "GET",
        "/v1/functions",
        "list_functions",
        "The user functions that are given to the network, and what each broker makes of them",
        {200: Answer("all files in force, by name", "Functions")},
    ),
    Route(
        "POST",
        "/v1/functions/{name}",
        "give_functions",
        "Give a file of user functions to the network, as it stands",
        {
            200: Answer(
                "it is in the journal here, and travels; or it was there", "GivenFunctions"
            ),
            408: Answer("the body did not come in time"),
            409: Answer("it cannot be taken now, and why: who calls what it replaces, or a name"),
            413: Answer("the file is too long"),
            415: Answer("the body is packed"),
            422: Answer("the file is faulty, and where"),
        },
        parameters=(_FILE,),
        body="a file in Python",
        media=("text/x-python", "text/plain"),
    ),
    Route(
        "DELETE",
        "/v1/functions/{name}",
        "remove_functions",
        "Take a file of user functions away from the network",
        {
            200: Answer(
                "it is gone here, and so at each broker that hears of it", "RemovedFunctions"
            ),
            404: Answer("no such file is in force"),
            409: Answer("subscriptions call its functions, and which"),
        },
        parameters=(_FILE,),
    ),
    Route(
        "GET",
        "/v1/backup",
        "backup",
        "A consistent copy of the data directory; its last file is the manifest",
        {
            200: Answer("a tar", "Text", "application/x-tar"),
            409: Answer("there is no data directory, or a backup cannot be taken now"),
        },
    ),
    Route(
        "GET",
        "/v1/results",
        "results",
        "Results from now on, one JSON object a line; an empty line is a sign of life",
        {
            200: Answer("a stream without end", "Result", _NDJSON),
            503: Answer("too many follow already"),
        },
        parameters=(Parameter("subscription", "only the results of this one"),),
    ),
    Route(
        "GET",
        "/",
        "dashboard",
        "A page that shows what this broker is doing",
        {200: Answer("for a browser", "Text", "text/html")},
    ),
    Route(
        "GET",
        "/openapi.json",
        "openapi",
        "This interface, described",
        {200: Answer("OpenAPI 3.1", "OpenApi")},
    ),
    *LOG_ROUTES,
)
