"""Which request stands for which event, and what an answer means."""

from __future__ import annotations

import pytest

from runguard.heartbeat.body import EMPTY, Body
from runguard.heartbeat.styles import STYLES, Event, Request, detect, judge, request, usable

UUID = "5bf66975-d4c7-4bf5-bcc8-b8d8a82ea278"
RUN = "01957a0e-6b1f-7c3a-9f2e-3d1b5c7a9e10"
HOSTED = f"https://hc-ping.com/{UUID}"
KEY = "fqOOd6-F4MMNuCEnzTU01w"
BODY = Body("failed, exit 3", "no such file", 0)


@pytest.mark.parametrize(
    ("url", "style"),
    [
        (HOSTED, "healthchecks"),
        (f"https://hc-ping.com/{KEY}/letters", "healthchecks"),
        (f"https://HC-Ping.com/{KEY}/letters?create=1", "healthchecks"),
        (f"https://monitor.example/ping/{UUID}", "healthchecks"),
        (f"https://monitor.example/ping/{UUID}/", "healthchecks"),
        (f"http://monitor.example:8000/hc/ping/{UUID}?create=1", "healthchecks"),
        (f"https://monitor.example/ping/{KEY}/letters", "healthchecks"),
        (f"https://user:pass@monitor.example/ping/{UUID}", "healthchecks"),
        (f"https://hc-ping.com.evil.example/{UUID}", "plain"),
        (f"https://evil.example/?hc-ping.com/{UUID}", "plain"),
        (f"https://monitor.example/ping/{UUID}/start", "plain"),
        ("https://monitor.example/ping", "plain"),
        ("https://monitor.example/ping/", "plain"),
        ("https://monitor.example/ping/eu/letters", "plain"),
        ("https://monitor.example/ping/not-a-uuid-but-thirty-six-characters", "plain"),
        ("https://monitor.example/anything?status=up", "plain"),
        ("http://[::1]:8080/x", "plain"),
    ],
)
def test_a_style_is_recognised_by_host_and_path(url, style):
    assert detect(url) == style


@pytest.mark.parametrize(
    ("event", "method", "url"),
    [
        (Event("start", RUN), "POST", f"{HOSTED}/start?rid={RUN}"),
        (Event("start", RUN, rid_ok=False), "POST", f"{HOSTED}/start?rid={RUN}"),
        (Event("success", RUN, 0), "POST", f"{HOSTED}?rid={RUN}"),
        (Event("success", RUN, 0, rid_ok=False), "POST", HOSTED),
        (Event("failure", RUN, 1), "POST", f"{HOSTED}/1?rid={RUN}"),
        (Event("failure", RUN, 3, rid_ok=False), "POST", f"{HOSTED}/3"),
        (Event("failure", RUN, 255), "POST", f"{HOSTED}/255?rid={RUN}"),
        (Event("failure", RUN, 124), "POST", f"{HOSTED}/124?rid={RUN}"),
        (Event("failure", RUN, None, signal=9), "POST", f"{HOSTED}/137?rid={RUN}"),
        (Event("failure", RUN, -15), "POST", f"{HOSTED}/143?rid={RUN}"),
        (Event("failure", RUN, 0), "POST", f"{HOSTED}/fail?rid={RUN}"),
        (Event("failure", RUN, None), "POST", f"{HOSTED}/fail?rid={RUN}"),
        (Event("failure", RUN, 256), "POST", f"{HOSTED}/fail?rid={RUN}"),
        (Event("log", RUN, 1), "POST", f"{HOSTED}/log?rid={RUN}"),
        (Event("log", RUN, rid_ok=False), "POST", f"{HOSTED}/log"),
        (Event("start", "not-a-uuid"), "POST", f"{HOSTED}/start"),
        (Event("start", RUN.replace("-", "")), "POST", f"{HOSTED}/start"),
        (Event("start", RUN[:-1] + "z"), "POST", f"{HOSTED}/start"),
    ],
)
def test_healthchecks_gets_the_url_of_the_event(event, method, url):
    assert request("healthchecks", HOSTED, event) == Request(method, url)


@pytest.mark.parametrize(
    ("given", "sent"),
    [
        (
            f"https://h.example/ping/{KEY}/letters?create=1",
            f"https://h.example/ping/{KEY}/letters/3?create=1&rid={RUN}",
        ),
        (f"{HOSTED}/", f"{HOSTED}/3?rid={RUN}"),
        (f"{HOSTED}#anchor", f"{HOSTED}/3?rid={RUN}"),
        (f"HTTPS://u:p@h.example:8443/ping/{UUID}", f"https://u:p@h.example:8443/ping/{UUID}/3?rid={RUN}"),
    ],
)
def test_healthchecks_keeps_query_port_and_user_of_the_url(given, sent):
    assert request("healthchecks", given, Event("failure", RUN, 3)).url == sent


def test_healthchecks_is_sent_the_body():
    assert request("healthchecks", HOSTED, Event("failure", RUN, 3, body=BODY)).body == BODY


@pytest.mark.parametrize("kind", ["start", "failure", "log"])
def test_plain_says_nothing_but_success(kind):
    assert request("plain", "https://monitor.example/x", Event(kind, RUN, 1, body=BODY)) is None


def test_plain_is_a_get_of_the_very_url_without_a_body():
    url = "https://monitor.example/a/?b=c&d=%20"
    assert request("plain", url, Event("success", RUN, 0, body=BODY)) == Request("GET", url, (), EMPTY)


@pytest.mark.parametrize(
    ("status", "body", "verdict"),
    [
        (200, b"OK", "accepted"),
        (201, b"Created", "accepted"),
        (202, b"", "accepted"),
        (204, b"", "accepted"),
        (200, b"OK (not found)", "final"),
        (200, b" ok (NOT FOUND)\n", "final"),
        (200, b"OK (rate limited)", "retry"),
        (404, b"not found", "final"),
        (409, b"ambiguous slug", "final"),
        (400, b"invalid url format", "final"),
        (401, b"", "final"),
        (403, b"", "final"),
        (405, b"", "final"),
        (410, b"", "final"),
        (413, b"", "final"),
        (301, b"", "final"),
        (304, b"", "final"),
        (408, b"", "retry"),
        (429, b"", "retry"),
        (500, b"", "retry"),
        (502, b"", "retry"),
        (503, b"", "retry"),
        (599, b"", "retry"),
    ],
)
@pytest.mark.parametrize("style", sorted(STYLES))
def test_an_answer_is_judged_by_status_and_body(style, status, body, verdict):
    assert judge(style, status, body) == verdict


def test_a_page_that_speaks_of_not_found_is_a_success_to_an_unknown_monitor():
    assert judge("plain", 200, b"<p>404 pages not found: 0</p>") == "accepted"


@pytest.mark.parametrize(
    "url",
    [
        HOSTED,
        "http://localhost/",
        "http://127.0.0.1:8000/ping/x",
        "https://u:p@h.example",
        "http://[::1]:80/",
        "http://ü.example/x",
    ],
)
def test_a_sane_url_is_usable(url):
    assert usable(url) is None


@pytest.mark.parametrize(
    ("url", "why"),
    [
        ("", "the ping URL is empty"),
        ("  \n", "the ping URL is empty"),
        (f"{HOSTED}\n", "the ping URL has a space or a control character in it"),
        ("https://hc-ping.com/a b", "the ping URL has a space or a control character in it"),
        (UUID, "the ping URL has no scheme: it should begin with https:// or http://"),
        ("hc-ping.com/x", "the ping URL has no scheme: it should begin with https:// or http://"),
        ("ftp://monitor.example/x", "the ping URL is neither https:// nor http://"),
        ("file:///etc/passwd", "the ping URL is neither https:// nor http://"),
        ("https:///x", "the ping URL has no valid host and port"),
        ("https://:80/x", "the ping URL has no valid host and port"),
        ("https://[]/x", "the ping URL has no valid host and port"),
        ("https://h.example:http/x", "the ping URL has no valid host and port"),
        ("https://h.example:99999/x", "the ping URL has no valid host and port"),
        ("https://h.example/\udcff", "the ping URL is not valid UTF-8"),
        (f"{HOSTED}/fail", "the ping URL ends in /fail: give the check's own URL, without it"),
        (f"{HOSTED}/3", "the ping URL ends in /3: give the check's own URL, without it"),
        (f"{HOSTED}/start/", "the ping URL ends in /start: give the check's own URL, without it"),
    ],
)
def test_an_unusable_url_is_explained_without_being_shown(url, why):
    assert usable(url) == why
