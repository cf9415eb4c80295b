"""The page for people: it comes from the broker alone, and shows what it is told as text."""

import base64
import hashlib
import re

from broker.credentials import hash_password
from broker.http.dashboard import PAGE, SCRIPT
from broker.http.routes import ROUTES
from tests.broker.http.fakes import FakeBroker, rights_of, talk
from tests.broker.http.test_face import basic


def test_the_page_is_served_with_a_policy_that_lets_nothing_else_run():
    async def scenario(client):
        answer = await client.get("/")
        assert answer.status == 200
        assert answer.content_type == "text/html"
        page, policy = await answer.text(), answer.headers["Content-Security-Policy"]
        assert policy.startswith("default-src 'none';")
        for kind in ("style", "script"):
            (inside,) = re.findall(f"<{kind}>(.*?)</{kind}>", page, re.DOTALL)
            digest = base64.b64encode(hashlib.sha256(inside.encode()).digest()).decode()
            assert f"{kind}-src 'sha256-{digest}'" in policy
        assert "connect-src 'self'" in policy
        assert "unsafe" not in policy

    talk(FakeBroker(), scenario)


def test_the_page_asks_for_a_user_where_there_are_users():
    async def scenario(client):
        assert (await client.get("/")).status == 401
        assert (await client.get("/", headers=basic("anna", "sesame"))).status == 200

    talk(FakeBroker(), scenario, rights_of(anna=hash_password("sesame")))


def test_the_page_needs_nothing_from_elsewhere_and_asks_for_what_there_is():
    assert not re.search(r"https?:|//[a-z]|@import|url\(|<link|<img|<iframe| src=| on[a-z]+=", PAGE)
    asked = set(re.findall(r'"(/[a-z0-9/]+)"', SCRIPT))
    assert asked == {"/readyz", "/v1/status", "/v1/subscriptions", "/v1/results"}
    assert asked <= {route.path for route in ROUTES if route.method == "GET"}


def test_what_the_broker_tells_becomes_text_alone():
    """Names, reasons and values may be anybody's; no way leads from them to markup."""
    ways = ("innerHTML", "outerHTML", "insertAdjacent", "document.write", "eval(", "Function(")
    assert not [way for way in ways if way in SCRIPT]
    assert re.findall(r"createElement\((.*?)\)", SCRIPT) == ['kind || "td"', '"tr"']
    assert "setAttribute" not in SCRIPT


def test_each_place_that_is_filled_is_on_the_page():
    filled = set(re.findall(r'(?:at|fill)\("([a-z]+)"', SCRIPT))
    assert filled == set(re.findall(r'id="([a-z]+)"', PAGE))
