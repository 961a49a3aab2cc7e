"""The helper process against real servers, well-behaved and not."""

from __future__ import annotations

import json
import os
import socket
import ssl
import subprocess
import sys
from pathlib import Path

import pytest
import trustme

from receivers import (
    Healthchecks,
    Misbehaving,
    answer,
    close,
    drip,
    endless,
    garbage,
    hang,
    reset,
)
from runguard.heartbeat.body import Body
from runguard.heartbeat.client import message
from runguard.heartbeat.styles import Request

UUID = "5bf66975-d4c7-4bf5-bcc8-b8d8a82ea278"
FAST = {"delays_s": (0.01, 0.02, 0.03), "timeouts_s": (0.3, 0.3)}
BODY = Body("failed, exit 3", "no such file", 0)


def send(url, *, method="POST", style="healthchecks", body=BODY, environ=None, deadline_s=8.0, asked=None, **settings):
    """Run the helper on one request and return its result; the URL's secret must not be in anything it writes."""
    wanted = message(style, asked or Request(method, url, (), body), **{**FAST, **settings})
    wanted["deadline_s"] = deadline_s
    environment = {"PYTHONPATH": os.pathsep.join(sys.path), "NO_PROXY": "*", **(environ or {})}
    helper = [sys.executable, "-P", "-m", "runguard.sender"]
    ended = subprocess.run(
        helper, input=json.dumps(wanted).encode(), capture_output=True, env=environment, timeout=60, check=True
    )
    assert UUID.encode() not in ended.stdout + ended.stderr
    assert ended.stderr == b""
    return json.loads(ended.stdout)


def outcome(result):
    return result["verdict"], result["status"], result["tries"]


def test_a_ping_is_accepted_and_carries_its_body_and_who_sent_it():
    with Healthchecks() as monitor:
        result = send(monitor.add(UUID) + "/3")
    (ping,) = monitor.requests
    assert outcome(result) == ("accepted", 200, 1)
    assert result["detail"] == "HTTP 200"
    assert result["body_limit"] == 10_000
    assert (ping.method, ping.path, ping.body) == ("POST", f"/ping/{UUID}/3", b"failed, exit 3\nno such file")
    assert ping.headers["user-agent"] == "runguard/0.1.0"
    assert ping.headers["content-type"] == "text/plain; charset=utf-8"
    assert "authorization" not in ping.headers
    assert monitor.checks[UUID].status == "down"


def test_an_empty_body_has_a_content_length_and_is_not_chunked():
    with Healthchecks() as monitor:
        result = send(monitor.add(UUID), body=Body())
    assert outcome(result) == ("accepted", 200, 1)
    assert monitor.requests[0].headers["content-length"] == "0"
    assert "transfer-encoding" not in monitor.requests[0].headers


def test_plain_is_a_get_without_a_body():
    with Misbehaving([answer(200)]) as monitor:
        result = send(monitor.url("/x?a=b"), method="GET", style="plain", body=Body())
    (ping,) = monitor.requests
    assert outcome(result) == ("accepted", 200, 1)
    assert (ping.method, ping.path, ping.query, ping.body) == ("GET", "/x", {"a": "b"}, b"")
    assert "content-length" not in ping.headers


def test_a_check_created_by_its_ping_is_accepted():
    with Healthchecks() as monitor:
        result = send(monitor.url("/ping/fqOOd6-F4MMNuCEnzTU01w/letters?create=1"))
    assert outcome(result) == ("accepted", 201, 1)


OK = answer(200, b"OK")


def contradict(connection, over):
    connection.sendall(b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\nContent-Length: 5\r\n\r\nOK")


def stall(connection, over):
    connection.sendall(b"HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nOK")
    over.wait(60)


def redirect_without_end(connection, over):
    connection.sendall(b"HTTP/1.1 302 Found\r\nLocation: http://elsewhere.example/\r\n\r\n")
    endless(connection, over)


@pytest.mark.parametrize(
    ("steps", "expected"),
    [
        ([OK], ("accepted", 200, 1)),
        ([answer(201, b"Created")], ("accepted", 201, 1)),
        ([answer(503), OK], ("accepted", 200, 2)),
        ([answer(500), answer(502), OK], ("accepted", 200, 3)),
        ([answer(408), OK], ("accepted", 200, 2)),
        ([answer(429), OK], ("accepted", 200, 2)),
        ([answer(200, b"OK (rate limited)"), OK], ("accepted", 200, 2)),
        ([reset, OK], ("accepted", 200, 2)),
        ([close, OK], ("accepted", 200, 2)),
        ([garbage, OK], ("accepted", 200, 2)),
        ([hang, OK], ("accepted", 200, 2)),
        ([answer(503)], ("undelivered", 503, 4)),
        ([reset], ("undelivered", None, 4)),
        ([hang], ("undelivered", None, 4)),
        ([answer(200, b"OK (rate limited)")], ("undelivered", 200, 4)),
        ([answer(404, b"not found"), OK], ("final", 404, 1)),
        ([answer(409, b"ambiguous slug"), OK], ("final", 409, 1)),
        ([answer(200, b"OK (not found)"), OK], ("final", 200, 1)),
        ([answer(403), OK], ("final", 403, 1)),
        ([answer(103), OK], ("accepted", 200, 2)),
        ([contradict, OK], ("accepted", 200, 2)),
        ([endless], ("accepted", 200, 1)),
    ],
    ids=lambda value: str(value) if isinstance(value, tuple) else "",
)
def test_an_answer_decides_whether_it_is_sent_again(steps, expected):
    with Misbehaving(steps) as monitor:
        result = send(monitor.url(f"/ping/{UUID}"))
    assert outcome(result) == expected
    assert len(monitor.requests) == expected[2]


def test_the_whole_body_is_sent_again():
    with Misbehaving([reset, answer(429), OK]) as monitor:
        send(monitor.url("/x"))
    assert [ping.body for ping in monitor.requests] == [b"failed, exit 3\nno such file"] * 3


@pytest.mark.parametrize("status", [400, 413])
def test_after_an_answer_that_blames_the_body_one_goes_without_it(status):
    with Misbehaving([answer(status), OK]) as monitor:
        result = send(monitor.url("/x"))
    assert outcome(result) == ("accepted", 200, 2)
    assert [ping.body for ping in monitor.requests] == [b"failed, exit 3\nno such file", b""]
    assert monitor.requests[1].headers["content-length"] == "0"


@pytest.mark.parametrize("status", [400, 413])
def test_blaming_a_body_that_was_not_there_is_final(status):
    with Misbehaving([answer(status), OK]) as monitor:
        result = send(monitor.url("/x"), body=Body())
    assert outcome(result) == ("final", status, 1)


def test_after_server_errors_the_last_try_goes_without_the_body():
    with Misbehaving([answer(500)]) as monitor:
        send(monitor.url("/x"))
    assert [bool(ping.body) for ping in monitor.requests] == [True, True, True, False]


@pytest.mark.parametrize(("status", "outcomes"), [(500, ("undelivered", 500, 4)), (413, ("final", 413, 1))])
def test_data_is_sent_whole_each_time_or_not_at_all(status, outcomes):
    payload = "metric 1\n" * 2000  # more than any text may have
    with Misbehaving([answer(status, Ping_Body_Limit="20")]) as monitor:
        asked = Request("POST", monitor.url("/x"), (("Content-Type", "text/plain; version=0.0.4"),), payload=payload)
        assert outcome(send("", style="pushgateway", asked=asked, body_limit=10)) == outcomes
    assert {ping.body for ping in monitor.requests} == {payload.encode()}
    assert {ping.headers["content-type"] for ping in monitor.requests} == {"text/plain; version=0.0.4"}


def test_when_time_is_short_the_last_try_that_fits_goes_without_the_body():
    with Misbehaving([answer(500)]) as monitor:
        send(monitor.url("/x"), delays_s=(0.01, 60.0))
    assert [bool(ping.body) for ping in monitor.requests] == [True, False]


def test_a_body_is_cut_to_what_the_server_said_before():
    with Misbehaving([answer(503, Ping_Body_Limit="20"), OK]) as monitor:
        result = send(monitor.url("/x"), body=Body("failed", "x" * 100))
    assert len(monitor.requests[0].body) == 107
    assert len(monitor.requests[1].body) <= 20
    assert result["verdict"] == "accepted"


def test_a_body_that_is_too_large_is_sent_again_as_large_as_allowed():
    with Misbehaving([answer(413, Ping_Body_Limit="60"), OK]) as monitor:
        send(monitor.url("/x"), body=Body("failed", "x" * 100))
    assert monitor.requests[1].body == b"failed\n[68 bytes left out]\n" + b"x" * 32


def test_the_wait_that_a_server_asks_for_is_kept():
    with Misbehaving([answer(429, Retry_After="1"), OK]) as monitor:
        send(monitor.url("/x"))
    first, second = monitor.requests
    assert second.at_s - first.at_s >= 1.0


def test_a_wait_until_a_date_counts_from_the_servers_clock():
    dates = {"Date": "Sun, 10 Mar 2024 07:00:00 GMT", "Retry_After": "Sun, 10 Mar 2024 07:00:01 GMT"}
    with Misbehaving([answer(503, **dates), OK]) as monitor:
        send(monitor.url("/x"))
    first, second = monitor.requests
    assert second.at_s - first.at_s >= 1.0


def test_a_wait_beyond_the_deadline_is_not_waited_for():
    with Misbehaving([answer(429, Retry_After="3600"), OK]) as monitor:
        result = send(monitor.url("/x"))
    assert outcome(result) == ("undelivered", 429, 1)


@pytest.mark.parametrize("status", [301, 302, 307, 308])
def test_a_redirect_on_the_same_host_keeps_method_and_body(status):
    with Misbehaving([answer(status, Location="/y"), OK]) as monitor:
        result = send(monitor.url("/x"))
    assert outcome(result) == ("accepted", 200, 1)
    assert [(ping.method, ping.path, ping.body) for ping in monitor.requests] == [
        ("POST", "/x", b"failed, exit 3\nno such file"),
        ("POST", "/y", b"failed, exit 3\nno such file"),
    ]


def test_a_redirect_to_another_host_is_not_followed():
    with Healthchecks() as elsewhere, Misbehaving([answer(302, Location=elsewhere.add(UUID))]) as monitor:
        result = send(monitor.url(f"/ping/{UUID}"))
        assert result["detail"] == f"redirects to {elsewhere.url('/…ea278')}, which is not followed"
    assert outcome(result) == ("final", 302, 1)
    assert elsewhere.requests == []


def test_a_redirect_to_another_scheme_is_not_followed():
    with Misbehaving([answer(301, Location="https://127.0.0.1/x")]) as monitor:
        result = send(monitor.url("/x"))
    assert outcome(result) == ("final", 301, 1)


def test_a_redirect_loop_ends():
    with Misbehaving([answer(302, Location="/x")]) as monitor:
        result = send(monitor.url("/x"))
    assert outcome(result) == ("final", 302, 1)
    assert len(monitor.requests) == 4


def test_the_body_of_a_redirect_is_not_read():
    with Misbehaving([redirect_without_end]) as monitor:
        result = send(monitor.url("/x"))
    assert outcome(result) == ("final", 302, 1)


def test_a_redirect_to_what_is_no_address_is_not_followed():
    with Misbehaving([answer(302, Location="http://[elsewhere")]) as monitor:
        result = send(monitor.url("/x"))
    assert outcome(result) == ("final", 302, 1)


def test_a_body_that_does_not_come_is_not_waited_for():
    with Misbehaving([stall]) as monitor:
        result = send(monitor.url("/x"), timeouts_s=(60, 60), deadline_s=30)
    assert outcome(result) == ("accepted", 200, 1)
    assert result["elapsed_s"] < 20  # it would have hung until its deadline


@pytest.mark.parametrize(("steps", "status"), [([drip], None), ([hang], None), ([answer(503), drip], 503)])
def test_it_ends_by_itself_at_its_deadline(steps, status):
    with Misbehaving(steps) as monitor:
        result = send(monitor.url(f"/ping/{UUID}"), deadline_s=1.5, timeouts_s=(60, 60))
    assert result["verdict"] == "undelivered"
    assert result["detail"].startswith("no success within 1.5 s: ")
    assert result["status"] == status
    assert result["elapsed_s"] >= 1.5


def test_a_port_where_nobody_listens_is_tried_again():
    with socket.create_server(("127.0.0.1", 0)) as listener:
        port = listener.getsockname()[1]
    result = send(f"http://127.0.0.1:{port}/ping/{UUID}")
    assert outcome(result) == ("undelivered", None, 4)
    assert result["detail"] == "Connection refused"


def test_a_name_that_does_not_resolve_is_tried_again():
    result = send(f"http://does-not-exist.invalid/ping/{UUID}")
    assert outcome(result) == ("undelivered", None, 4)
    assert result["detail"].startswith("DNS: ")


def test_an_answer_that_repeats_the_url_is_masked():
    with Misbehaving([answer(404, f"no check {UUID}\nmore".encode())]) as monitor:
        result = send(monitor.url(f"/ping/{UUID}"))
    assert result["detail"] == "HTTP 404: no check ***"


def test_an_answer_that_repeats_what_else_is_secret_is_masked():
    with Misbehaving([answer(404, b"no key hunter22")]) as monitor:
        result = send(monitor.url("/x"), secrets=("hunter22",))
    assert result["detail"] == "HTTP 404: no key ***"


def test_an_answer_with_escapes_is_made_printable():
    with Misbehaving([answer(404, b"\x1b]52;c;x\x07 red \xff" + b"x" * 100)]) as monitor:
        result = send(monitor.url("/x"))
    assert result["detail"] == "HTTP 404: ]52;c;x red " + "x" * 45


def test_a_url_that_cannot_be_requested_is_final():
    result = send(f"http://[not-an-address]/ping/{UUID}")
    assert outcome(result) == ("final", None, 1)


def test_credentials_of_netrc_are_not_sent(tmp_path):
    netrc = tmp_path / ".netrc"
    netrc.write_text("machine 127.0.0.1 login bob password hunter2\n")
    with Healthchecks() as monitor:
        send(monitor.add(UUID), environ={"HOME": str(tmp_path), "NETRC": str(netrc)})
    assert "authorization" not in monitor.requests[0].headers


def test_a_user_and_password_in_the_url_are_sent():
    with Healthchecks() as monitor:
        send(monitor.add(UUID).replace("http://", "http://bob:pw@"))
    assert monitor.requests[0].headers["authorization"] == "Basic Ym9iOnB3"


def test_a_proxy_of_the_environment_is_used():
    with Misbehaving([OK]) as proxy:
        result = send("http://monitor.example/x", environ={"http_proxy": proxy.url(""), "NO_PROXY": ""})
    assert outcome(result) == ("accepted", 200, 1)
    assert proxy.requests[0].headers["host"] == "monitor.example"


@pytest.mark.parametrize("proxy", ["http://user:hunter22@h:99999999", "foo://user:hunter22@h", "http://"])
def test_a_proxy_that_cannot_be_used_is_no_fault_of_the_url(proxy):
    result = send("http://monitor.example/x", environ={"http_proxy": proxy, "NO_PROXY": ""})
    assert (outcome(result), result["detail"]) == (
        ("undelivered", None, 4),
        "the proxy that the environment names cannot be used",
    )


def test_no_proxy_of_the_environment_is_kept():
    with Misbehaving([OK]) as monitor, Misbehaving([OK]) as proxy:
        send(monitor.url("/x"), environ={"http_proxy": proxy.url(""), "NO_PROXY": "127.0.0.1"})
    assert proxy.requests == []
    assert len(monitor.requests) == 1


@pytest.fixture(scope="module")
def authority():
    return trustme.CA()


def tls(authority: trustme.CA, host: str) -> ssl.SSLContext:
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    authority.issue_cert(host).configure_cert(context)
    return context


@pytest.fixture(scope="module")
def bundle(authority, tmp_path_factory) -> Path:
    path = tmp_path_factory.mktemp("ca") / "ca.pem"
    authority.cert_pem.write_to_path(str(path))
    return path


def test_tls_is_checked_against_the_authority_of_the_environment(authority, bundle):
    with Healthchecks(tls=tls(authority, "localhost")) as monitor:
        result = send(monitor.add(UUID), environ={"REQUESTS_CA_BUNDLE": str(bundle)})
    assert outcome(result) == ("accepted", 200, 1)


def test_an_unknown_authority_is_no_answer(authority):
    with Healthchecks(tls=tls(authority, "localhost")) as monitor:
        result = send(monitor.add(UUID))
    assert outcome(result) == ("undelivered", None, 4)
    assert result["detail"].startswith("TLS: ")
    assert monitor.requests == []


def test_a_certificate_for_another_host_is_no_answer(authority, bundle):
    with Healthchecks(tls=tls(authority, "other.example")) as monitor:
        result = send(monitor.add(UUID), environ={"REQUESTS_CA_BUNDLE": str(bundle)})
    assert outcome(result) == ("undelivered", None, 4)
    assert result["detail"].startswith("TLS: Hostname mismatch")


def test_an_authority_that_cannot_be_read_is_named(authority):
    with Healthchecks(tls=tls(authority, "localhost")) as monitor:
        result = send(monitor.add(UUID), environ={"REQUESTS_CA_BUNDLE": "/does/not/exist.pem"})
    assert result["detail"] == "TLS: the CA bundle that the environment names cannot be read"


def test_without_requests_it_says_so(tmp_path):
    (tmp_path / "requests.py").write_text("raise ImportError('no', name='requests')\n")
    places = os.pathsep.join([str(tmp_path), *sys.path])
    with Healthchecks() as monitor:
        result = send(monitor.add(UUID), environ={"PYTHONPATH": places})
    assert outcome(result) == ("undelivered", None, 0)
    assert result["detail"] == "the helper cannot import requests"


def test_it_is_quiet_when_nobody_waits_for_its_result():
    with Healthchecks() as monitor:
        wanted = json.dumps(message("healthchecks", Request("POST", monitor.add(UUID), (), BODY), **FAST))
        environment = {"PYTHONPATH": os.pathsep.join(sys.path)}
        helper = subprocess.Popen(
            [sys.executable, "-P", "-m", "runguard.sender"],
            stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE, env=environment,
        )  # fmt: skip
        helper.stdout.close()
        helper.stdin.write(wanted.encode())
        helper.stdin.close()
        assert helper.wait(30) == 0
        assert helper.stderr.read() == b""
        helper.stderr.close()
    assert monitor.paths == [f"/ping/{UUID}"]
