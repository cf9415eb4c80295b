"""The OpenAPI description of the table of routes.

Owns the document's form. Must not know anything that the table does not say. Invariant: it is a
valid OpenAPI 3.1 document.
"""

from typing import Any

from broker.http.route import Answer, Parameter, Route
from broker.http.routes import ROUTES, SCHEMAS
from broker.rights.requests import BY_ROUTE

OTHERWISE = Answer("refused, as by a page of another site, or failed; the message says why")


def document(version: str, *, with_users: bool) -> dict[str, Any]:
    """The description, for a broker of this version that asks for users or does not."""
    paths: dict[str, dict[str, Any]] = {}
    for route in ROUTES:
        paths.setdefault(route.path, {})[route.method.lower()] = _operation(route, with_users)
    components: dict[str, Any] = {"schemas": SCHEMAS}
    if with_users:
        components["securitySchemes"] = {
            "user": {"type": "http", "scheme": "basic"},
            "token": {"type": "http", "scheme": "bearer"},
        }
    return {
        "openapi": "3.1.0",
        "info": {
            "title": "Headwater",
            "version": version,
            "summary": "One broker: its subscriptions, results and health",
        },
        "paths": paths,
        "components": components,
    }


def _operation(route: Route, with_users: bool) -> dict[str, Any]:
    answers = dict(route.answers)
    if with_users and not is_open(route):
        answers[401] = Answer("a user's name and password, or a token, are needed")
        need = BY_ROUTE[f"{route.method} {route.path}"].need
        answers.setdefault(403, Answer(f"the user's roles do not grant `{need}`"))
        answers[429] = Answer("too many logins from this address failed of late")
    responses = {str(code): _response(answer) for code, answer in sorted(answers.items())}
    operation: dict[str, Any] = {
        "operationId": route.name,
        "summary": route.meaning,
        "responses": {**responses, "default": _response(OTHERWISE)},
    }
    if route.parameters:
        operation["parameters"] = [_parameter(parameter) for parameter in route.parameters]
    if route.body:
        operation["requestBody"] = {
            "required": True,
            "description": route.body,
            "content": {media: {"schema": {"type": "string"}} for media in route.media},
        }
    if with_users and not is_open(route):
        operation["security"] = [{"user": []}, {"token": []}]
    return operation


def is_open(route: Route) -> bool:
    """Return if anybody is answered, also where there are users."""
    return BY_ROUTE[f"{route.method} {route.path}"].need == "nothing"


def _parameter(one: Parameter) -> dict[str, Any]:
    return {
        "name": one.name,
        "in": one.where,
        "required": one.needed or one.where == "path",
        "description": one.meaning,
        "schema": one.schema,
    }


def _response(answer: Answer) -> dict[str, Any]:
    schema = {"$ref": f"#/components/schemas/{answer.schema}"}
    content = {media: {"schema": schema} for media in (answer.media, *answer.others)}
    return {"description": answer.meaning, "content": content}
