"""The server of the explore page: loopback, its own host alone, and errors in plain words."""

import http.client
import json
import warnings
from collections.abc import Iterator
from typing import Any

import pytest
from tests.pages.serving import explore_server

import dp_sips
from dp_sips.errors import UsageError
from dp_sips.pages.explore import Settings
from dp_sips.pages.server import _ANSWERS, ExploreServer

USUAL = "epsilon=1&delta=1e-6&max_items=100&mechanism=sips&items_per_user=10"


@pytest.fixture(scope="module")
def server() -> Iterator[ExploreServer]:
    with explore_server() as server:
        yield server


def get(server: ExploreServer, path: str, host: str | None = None) -> tuple[int, str, Any]:
    connection = http.client.HTTPConnection("127.0.0.1", server.server_port, timeout=60)
    try:
        connection.request("GET", path, headers={"Host": host} if host else {})
        response = connection.getresponse()
        return response.status, response.read().decode(), response.headers
    finally:
        connection.close()


def test_listens_on_loopback_alone(server: ExploreServer) -> None:
    assert server.server_address[0] == "127.0.0.1"
    assert server.address == f"http://127.0.0.1:{server.server_port}/"


def test_the_page(server: ExploreServer) -> None:
    status, page, headers = get(server, "/")
    assert status == 200
    assert headers["Content-Type"] == "text/html; charset=utf-8"
    assert "connect-src &#x27;self&#x27;" in page
    for name in ("auto", "sips", "matching", "single"):
        assert f'<option value="{name}">' in page


def test_what_is_unwise_is_said_on_the_page(server: ExploreServer) -> None:
    unwise = USUAL.replace("1e-6", "0.01").replace("epsilon=1", "epsilon=20")
    with warnings.catch_warnings():
        warnings.simplefilter("error")  # where one is raised, there is no answer
        answer = json.loads(get(server, f"/numbers?{unwise}")[1])
    assert "delta=0.01 lets the promise fail for one person in 100" in answer["unwise"]
    assert "epsilon=20 hardly protects anybody" in answer["unwise"]
    assert json.loads(get(server, f"/numbers?{USUAL}")[1])["unwise"] == ""


def test_numbers_are_the_plans(server: ExploreServer) -> None:
    _, text, _ = get(server, f"/numbers?{USUAL}")
    answer = json.loads(text)
    plan = dp_sips.plan("sips", epsilon=1, delta=1e-6, max_items=100)
    assert int(answer["half"]) == plan.users_needed(0.5, 10)
    assert int(answer["most"]) == plan.users_needed(0.95, 10)
    assert f"{plan.rounds[0].threshold:.2f}" in answer["rounds"]
    assert "each has 10" in answer["about"] or "has 10 items" in answer["about"]


def test_curves_go_through_them(server: ExploreServer) -> None:
    answer = json.loads(get(server, f"/curves?{USUAL}")[1])
    assert "<svg" in answer["chance"]
    assert "97 users" in answer["needs"]
    assert "<td>97</td>" in answer["table"]


def test_the_calls_do_what_the_page_says(server: ExploreServer) -> None:
    answer = json.loads(get(server, f"/numbers?{USUAL}")[1])
    assert answer["command"] == (
        "dp-sips select data.parquet --user USER --item ITEM --mechanism sips --epsilon 1.0 "
        "--delta 1e-06 --max-items 100"
    )
    names = {"dp_sips": dp_sips, "data": {"user": [1], "item": ["tea"]}}
    selection = eval(answer["python"], names)  # noqa: S307 (our own words)
    assert selection.plan == dp_sips.plan("sips", epsilon=1, delta=1e-6, max_items=100)


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ("epsilon=", "epsilon must be a number, got ''"),
        ("epsilon=-1", "epsilon must be"),
        ("epsilon=nan", "epsilon must be"),
        ("delta=2", "delta must be in (0, 1)"),
        ("max_items=0", "max_items must be a whole number from 1 to 1,000,000, got 0"),
        ("max_items=1e400", "max_items must be a whole number"),
        ("items_per_user=2.5", "items_per_user must be a whole number"),
        ("items_per_user=101", "only 100 of a user's items count"),
        ("mechanism=sip", "did you mean 'sips'"),
        ("mechanism=<b>", "unknown mechanism '<b>'"),
        ("mechanism=single", "max_items"),
    ],
)
def test_what_is_wrong_is_said_in_words(server: ExploreServer, change: str, words: str) -> None:
    settings = dict(pair.split("=") for pair in USUAL.split("&")) | dict([change.split("=")])
    query = "&".join(f"{name}={value}" for name, value in settings.items())
    for path in ("/numbers", "/curves"):
        status, text, headers = get(server, f"{path}?{query}")
        assert status == 200
        assert headers["Content-Type"].startswith("application/json")
        assert words in json.loads(text)["error"]


def test_what_cannot_be_computed_is_said_as_well(
    server: ExploreServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    def too_large(_: Settings) -> str:
        raise OverflowError

    monkeypatch.setitem(_ANSWERS, "/numbers", too_large)
    answer = json.loads(get(server, f"/numbers?{USUAL}")[1])
    assert "beyond what can be computed" in answer["error"]


@pytest.mark.parametrize("host", ["example.org", "127.0.0.1", "localhost:1", "127.0.0.1.evil:80"])
def test_another_host_gets_nothing(server: ExploreServer, host: str) -> None:
    status, text, _ = get(server, "/", host)
    assert (status, text) == (403, "this is another host")


def test_localhost_is_this_machine(server: ExploreServer) -> None:
    assert get(server, "/", f"localhost:{server.server_port}")[0] == 200


def test_nothing_else_is_there(server: ExploreServer) -> None:
    assert get(server, "/../../etc/passwd")[0] == 404
    connection = http.client.HTTPConnection("127.0.0.1", server.server_port, timeout=60)
    connection.request("POST", "/numbers", body="x")
    assert connection.getresponse().status == 501
    connection.close()


def test_a_taken_port_is_an_error_in_words(server: ExploreServer) -> None:
    with pytest.raises(UsageError, match=f"port {server.server_port} cannot be used"):
        ExploreServer(server.server_port)
    with pytest.raises(UsageError, match="port 70000 cannot be used"):
        ExploreServer(70_000)


def test_auto_says_what_it_is() -> None:
    from dp_sips.pages.explore import numbers

    few = json.loads(numbers(Settings(1.0, 1e-6, 1, "auto", 1)))
    assert "With these settings, auto is single." in few["about"]
    many = json.loads(numbers(Settings(1.0, 1e-6, 100, "auto", 1)))
    assert "A private look at the data" in many["about"]
    assert "if matching is chosen" in many["rounds"]
