"""Which request stands for which event, and what an answer means."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from runguard.heartbeat.body import EMPTY, Body, fit
from runguard.heartbeat.styles import STYLES, Event, Request, detect, judge, request, template, usable
from runguard.instant import from_rfc3339
from runguard.settings import PING_STYLES

UUID = "5bf66975-d4c7-4bf5-bcc8-b8d8a82ea278"
RUN = "01957a0e-6b1f-7c3a-9f2e-3d1b5c7a9e10"
HOSTED = f"https://hc-ping.com/{UUID}"
KEY = "fqOOd6-F4MMNuCEnzTU01w"
BODY = Body("failed, exit 3", "no such file", 0)
SENTRY_KEY = "0123456789abcdef0123456789abcdef"

# Exact requests: event × style. The events are those of tests/data/pings.json.
GOLDEN = json.loads((Path(__file__).parents[1] / "data" / "pings.json").read_text())


def golden_event(name):
    """Return the event of that name, and whether it is one."""
    fields = dict(GOLDEN["events"][name])
    body = Body(fields.pop("summary", ""), fields.pop("tail", ""))
    at_us = from_rfc3339(fields.pop("at")) if "at" in fields else 0
    return Event(
        fields.pop("kind"), GOLDEN["run_id"], body=body, job=GOLDEN["job"], host=GOLDEN["host"],
        due_us=from_rfc3339(GOLDEN["due"]), at_us=at_us, **fields,
    )  # fmt: skip


@pytest.mark.parametrize("name", GOLDEN["events"])
@pytest.mark.parametrize("style", GOLDEN["styles"])
def test_a_style_sends_exactly_this(style, name):
    address = GOLDEN["styles"][style]["address"]
    sent = request(style, address, golden_event(name))
    told = sent and {
        "method": sent.method,
        "url": sent.url,
        "headers": dict(sent.headers),
        "body": sent.payload or fit(sent.body).decode(),
    }
    assert told == GOLDEN["styles"][style]["requests"][name]


def test_every_style_has_its_golden_requests_and_can_be_chosen():
    assert list(GOLDEN["styles"]) == list(STYLES) == list(PING_STYLES)


@pytest.mark.parametrize("style", [name for name in GOLDEN["styles"] if name != "template"])
def test_a_golden_address_is_recognised(style):
    assert detect(GOLDEN["styles"][style]["address"]) == style


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
        ("https://hc.example/ping/aPingKey/letters", "plain"),
        ("https://uptime.betterstack.com/api/v1/heartbeat/KvsF4dYvvtAcKQvXyRWgtEdC", "betterstack"),
        ("https://betteruptime.com/api/v1/heartbeat/KvsF4dYvvtAcKQvXyRWgtEdC/", "betterstack"),
        ("https://proxy.example/up/api/v1/heartbeat/KvsF4dYv", "betterstack"),
        ("https://uptime.betterstack.com/api/v2/heartbeat/KvsF4dYv", "plain"),
        ("https://uptime.betterstack.com/api/v1/heartbeat/", "plain"),
        ("https://uptime.betterstack.com/api/v1/heartbeats/KvsF4dYv", "plain"),
        ("https://uptime.betterstack.com/?/api/v1/heartbeat/KvsF4dYv", "plain"),
        ("http://127.0.0.1:3001/api/push/a1B2c3D4e5", "kuma"),
        ("https://status.example/kuma/api/push/a1B2c3D4e5?status=up&msg=OK&ping=", "kuma"),
        ("https://status.example/api/push/", "plain"),
        ("https://status.example/api/push/a1B2c3D4e5/badge", "plain"),
        ("https://status.example/push/a1B2c3D4e5", "plain"),
        (f"https://cronitor.link/p/{SENTRY_KEY}/letters", "cronitor"),
        (f"https://cronitor.link/p/{SENTRY_KEY}/send%20letters?env=x", "cronitor"),
        (f"https://cronitor.link/p/{SENTRY_KEY}", "plain"),
        (f"https://cronitor.io/p/{SENTRY_KEY}/letters", "plain"),
        (f"https://cronitor.link.evil.example/p/{SENTRY_KEY}/letters", "plain"),
        (f"https://o1.ingest.sentry.io/api/42/cron/letters/{SENTRY_KEY}/", "sentry"),
        (f"https://sentry.example/api/1/cron/letters/{SENTRY_KEY}", "sentry"),
        (f"https://sentry.example/api/x/cron/letters/{SENTRY_KEY}/", "plain"),
        ("https://sentry.example/api/1/cron/letters/", "plain"),
        ("https://sentry.example/api/1/envelope/", "plain"),
        ("https://nosnch.in/c2354d53d2", "snitch"),
        ("https://nosnch.in/", "plain"),
        ("https://nosnch.in.example/c2354d53d2", "plain"),
        ("https://deadmanssnitch.com/snitches/c2354d53d2", "plain"),
        ("http://127.0.0.1:9091/metrics/job/letters", "pushgateway"),
        ("http://gw.example/push/metrics/job/letters/instance/db1", "pushgateway"),
        ("http://gw.example/metrics/job@base64/bGV0dGVycw", "pushgateway"),
        ("http://gw.example/metrics", "plain"),
        ("http://gw.example/metrics/job/", "plain"),
        ("http://gw.example/metrics/jobs/letters", "plain"),
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
        (Event("failure", RUN, 124, signal=15), "POST", f"{HOSTED}/124?rid={RUN}"),
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


@pytest.mark.parametrize(
    ("style", "most_bytes"),
    [("kuma", 250), ("snitch", 250), ("cronitor", 1000)],
)
def test_text_in_an_address_is_cut_between_characters(style, most_bytes):
    event = Event("failure", RUN, 3, body=Body("€" * 400))
    address = GOLDEN["styles"][style]["address"]
    assert request(style, address, event).url.count("%E2%82%AC") == most_bytes // 3


def test_no_text_goes_into_an_address_where_the_user_wants_none():
    event = Event("failure", RUN, 3, body=BODY, text_limit_bytes=0)
    assert request("snitch", "https://nosnch.in/c2354d53d2", event).url == "https://nosnch.in/c2354d53d2?s=3"


def test_cronitor_keeps_the_host_of_its_address():
    url = request("cronitor", f"https://cronitor.link/p/{SENTRY_KEY}/x?host=a", Event("start", RUN, host="b")).url
    assert url == f"https://cronitor.link/p/{SENTRY_KEY}/x?host=a&state=run&series={RUN}"


def test_sentry_is_asked_at_an_address_with_a_slash_at_its_end():
    url = request("sentry", f"https://s.example/api/1/cron/x/{SENTRY_KEY}", Event("success", RUN, rid_ok=False)).url
    assert url == f"https://s.example/api/1/cron/x/{SENTRY_KEY}/?status=ok&check_in_id={RUN}"


def test_kuma_refuses_in_words_too():
    assert judge("kuma", 200, b'{"ok": false, "msg": "Monitor not found or not active."}') == "final"
    assert judge("kuma", 200, b'{"ok":true}') == "accepted"


@pytest.mark.parametrize(
    ("url", "filled"),
    [
        ("https://m.example/{job}/{exit}", "https://m.example/a%20%26%2Fb/3"),
        ("https://m.example/?x={{{exit}}}", "https://m.example/?x={3}"),
        ("https://m.example/?x={{exit}}", "https://m.example/?x={exit}"),
        ("https://m.example/?due={due}&took={duration}", "https://m.example/?due=&took="),
        ("https://m.example/x#{exit}", "https://m.example/x"),
    ],
)
def test_a_template_is_filled_with_encoded_values(url, filled):
    assert template.flaw(url) is None
    assert request("template", url, Event("failure", RUN, 3, job="a &/b")).url == filled


@pytest.mark.parametrize(
    ("url", "what"),
    [
        ("https://m.example/{status}", "{status}"),
        ("https://m.example/{}", "a brace"),
        ("https://m.example/{", "a brace"),
        ("https://m.example/x}", "a brace"),
        ("https://m.example/{exit", "a brace"),
        ("https://m.example/{exit!r}", "a brace"),
        (f"https://m.example/{{{SENTRY_KEY}}}", "a brace"),
    ],
)
def test_a_template_with_another_placeholder_is_explained_without_being_shown(url, what):
    known = "{exit}, {run_id}, {duration}, {due}, {host}, {job}"
    assert template.flaw(url) == f"{what} is no placeholder; there are {known}, and {{{{ and }}}} for braces"


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
        f"https://hc-ping.com/{KEY}/fail",
        "https://nosnch.in/1234567890",
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
        (f"https://h.example:{'1' * 5000}/x", "the ping URL has no valid host and port"),
        ("https://h.example/\udcff", "the ping URL is not valid UTF-8"),
        (f"{HOSTED}/fail", "the ping URL ends in /fail: give the check's own URL, without it"),
        (f"{HOSTED}/3", "the ping URL ends in /3: give the check's own URL, without it"),
        (f"https://hc-ping.com/{KEY}/letters/fail", "the ping URL ends in /fail: give the check's own URL, without it"),
        (f"https://h.example/ping/{KEY}/letters/1", "the ping URL ends in /1: give the check's own URL, without it"),
        (
            "https://uptime.betterstack.com/api/v1/heartbeat/KvsF4dYv/fail",
            "the ping URL ends in /fail: give the check's own URL, without it",
        ),
        (f"{HOSTED}/start/", "the ping URL ends in /start: give the check's own URL, without it"),
    ],
)
def test_an_unusable_url_is_explained_without_being_shown(url, why):
    assert usable(url) == why
