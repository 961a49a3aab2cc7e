"""The heartbeat's own process: one request in JSON on stdin, one result in JSON on stdout. `python -m runguard.sender`

The only importer of requests. It runs beside or after a command, in a session of its own, so that a monitor that hangs
delays nobody: whoever started it kills it at a deadline, and it ends by itself at that deadline too. What it prints
never holds the URL, nor the text of an exception, which may hold it.

The request (see `heartbeat.client.message`): style, method, url, headers, summary, tail, omitted_bytes, payload, limit,
deadline_s, delays_s, timeouts_s, answer_bytes, secrets. The result: verdict (accepted, undelivered, final), status,
tries, detail, elapsed_s, body_limit, and answer: so many bytes of it as were asked for.
"""

from __future__ import annotations

import contextlib
import json
import os
import random
import sys
import threading
import time
from typing import TYPE_CHECKING, Any, NamedTuple

from runguard import __version__
from runguard.heartbeat.address import split
from runguard.heartbeat.body import Body, fit
from runguard.heartbeat.redact import mask_bytes, mask_url, secrets_of
from runguard.heartbeat.reply import body_limit, first_line, retry_after_s
from runguard.heartbeat.styles import judge

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    import requests

_ANSWER_BYTES = 4096
_ANSWER_S = 2.0  # for the rest of an answer once its status is known
_REDIRECTS = 3
_REDIRECTED = (301, 302, 307, 308)
_BODY_MAY_BE_WHY = (400, 413)


class Answer(NamedTuple):
    """What one try came to: an HTTP answer, or (status None) why there is none."""

    verdict: str  # of styles.VERDICTS
    status: int | None
    detail: str
    retry_after_s: float = 0.0
    body_limit: int | None = None
    answer: str = ""  # for who asked for it


def main() -> None:
    """Read the request, send it, print the result, and end: at the deadline at the latest."""
    os.chdir("/")  # keep no file system busy
    request = json.loads(sys.stdin.buffer.read())
    delivery = Delivery(request)
    watchdog = threading.Timer(request["deadline_s"], _give_up, (delivery,))
    watchdog.daemon = True
    watchdog.start()
    try:
        _print(delivery.run())
    except ImportError as error:
        _print(delivery.result("undelivered", f"the helper cannot import {error.name}"))
    except Exception as error:  # noqa: BLE001  # its text and traceback may hold the URL
        _print(delivery.result("undelivered", f"the helper failed: {type(error).__name__}"))


class Delivery:
    """The tries of one request; another thread may ask for the `result` so far."""

    def __init__(self, request: Mapping[str, Any]) -> None:
        self._began = time.monotonic()
        self._request = request
        self._body = Body(request["summary"], request["tail"], request["omitted_bytes"])
        self._limit: int = request["limit"]
        self._delays_s: Sequence[float] = request["delays_s"]
        self._tries = 0
        self._last = Answer("retry", None, "no answer yet")

    def run(self) -> dict[str, Any]:
        """Send until an answer is accepted or final, the delays are used up, or no further try fits."""
        session = _session()
        payload = self._request["payload"].encode()
        with_body = True
        for number in range(len(self._delays_s) + 1):
            body = payload or (fit(self._body, self._limit) if with_body else b"")
            self._tries = number + 1
            self._last = self._try(session, body)
            if self._last.body_limit is not None:
                self._limit = min(self._limit, self._last.body_limit)
            blamed = bool(body) and not payload and self._last.status in _BODY_MAY_BE_WHY
            shorter = self._last.status == 413 and self._limit < len(body)
            if self._last.verdict != "retry" and not blamed:
                break
            if number == len(self._delays_s):
                break
            delay_s = max(self._delays_s[number] * random.uniform(0.75, 1.25), self._last.retry_after_s)
            if delay_s >= self._left_s():
                break
            time.sleep(delay_s)
            if (blamed and not shorter) or ((self._last.status or 0) >= 500 and self._is_last(number + 1)):
                with_body = False
        return self.result({"retry": "undelivered"}.get(self._last.verdict, self._last.verdict), self._last.detail)

    def result(self, verdict: str, detail: str) -> dict[str, Any]:
        """Return the result as of now."""
        return {
            "verdict": verdict,
            "status": self._last.status,
            "tries": self._tries,
            "detail": detail,
            "elapsed_s": round(time.monotonic() - self._began, 3),
            "body_limit": self._last.body_limit,
            "answer": self._last.answer,
        }

    def at_the_deadline(self) -> dict[str, Any]:
        """Return the result of having run out of time."""
        return self.result("undelivered", f"no success within {self._request['deadline_s']:g} s: {self._last.detail}")

    def _is_last(self, number: int) -> bool:
        """Return whether no other try can follow the one with this number."""
        return number == len(self._delays_s) or self._delays_s[number] * 1.25 >= self._left_s()

    def _left_s(self) -> float:
        return float(self._request["deadline_s"] - (time.monotonic() - self._began))

    def _try(self, session: requests.Session, body: bytes) -> Answer:
        """Send once, following redirects that stay on the same origin: with the same method, and the body again."""
        import requests

        url = self._request["url"]
        for _ in range(_REDIRECTS + 1):
            try:
                prepared = self._prepared(session, url, body)
            except ValueError as error:  # the malformed URLs of requests
                return Answer("final", None, f"the URL cannot be requested: {type(error).__name__}")
            try:
                response = self._sent(session, prepared)
            except requests.exceptions.InvalidHeader:
                return Answer("retry", None, "the headers of the answer contradict each other")
            except ValueError as error:
                if _proxies(url):
                    return Answer("retry", None, "the proxy that the environment names cannot be used")
                return Answer("final", None, f"the URL cannot be requested: {type(error).__name__}")
            except requests.RequestException as error:
                return Answer("retry", None, _why(error))
            except OSError:
                return Answer("retry", None, "TLS: the CA bundle that the environment names cannot be read")
            location = response.headers.get("Location")
            if response.status_code not in _REDIRECTED or location is None:
                return self._judged(response)
            target = _joined(url, location)
            if _origin(target) != _origin(url):
                where = mask_url(target)
                return Answer("final", response.status_code, f"redirects to {where}, which is not followed")
            url = target
        return Answer("final", response.status_code, f"redirects more than {_REDIRECTS} times")

    def _prepared(self, session: requests.Session, url: str, body: bytes) -> requests.PreparedRequest:
        import requests

        prepared = session.prepare_request(
            requests.Request(self._request["method"], url, headers=dict(self._request["headers"]), data=body)
        )
        if body:
            prepared.headers.setdefault("Content-Type", "text/plain; charset=utf-8")
        elif prepared.method == "POST":
            prepared.headers["Content-Length"] = "0"  # without it the request is chunked, and ignored by servers
        return prepared

    def _sent(self, session: requests.Session, prepared: requests.PreparedRequest) -> requests.Response:
        """Send, and return the answer with its body unread.

        By the adapter: a session reads the whole body of a redirect, however long, even one that it is not to follow.
        """
        url = prepared.url or ""
        return session.get_adapter(url).send(
            prepared,
            stream=True,
            timeout=tuple(self._request["timeouts_s"]),
            # With trust_env off, so that ~/.netrc is never read, these two are ours to look up.
            proxies=_proxies(url),
            verify=_ca_bundle(),
        )

    def _judged(self, response: requests.Response) -> Answer:
        status = response.status_code
        wanted_bytes: int = self._request["answer_bytes"]
        answer = _beginning(response, max(_ANSWER_BYTES, wanted_bytes))
        verdict = judge(self._request["style"], status, answer)
        secrets = (*self._request["secrets"], *secrets_of({}, self._request["url"]))
        said = first_line(mask_bytes(answer[:_ANSWER_BYTES], secrets))
        return Answer(
            verdict,
            status,
            f"HTTP {status}" + (f": {said}" if verdict != "accepted" and said else ""),
            retry_after_s(response.headers),
            body_limit(response.headers),
            answer[:wanted_bytes].decode("utf-8", "replace"),
        )


def _proxies(url: str) -> dict[str, str]:
    import requests

    return requests.utils.get_environ_proxies(url)


def _joined(url: str, location: str) -> str:
    """Return where a redirect leads; what cannot be read leads elsewhere."""
    import requests

    try:
        return requests.compat.urljoin(url, location)
    except ValueError:
        return location


def _ca_bundle() -> str | bool:
    environ = os.environ  # noqa: TID251  # of this process, which has no other edge
    return environ.get("REQUESTS_CA_BUNDLE") or environ.get("CURL_CA_BUNDLE") or True


def _session() -> requests.Session:
    import requests

    session = requests.Session()
    session.trust_env = False
    session.headers.clear()
    session.headers.update(
        {"User-Agent": f"runguard/{__version__}", "Accept": "*/*", "Accept-Encoding": "identity", "Connection": "close"}
    )
    return session


def _beginning(response: requests.Response, most_bytes: int) -> bytes:
    """Return at most so much of the body; what has not come in _ANSWER_S is left unread."""
    answer = bytearray()
    reading = threading.Thread(target=_read, args=(response, most_bytes, answer), daemon=True)
    reading.start()
    reading.join(_ANSWER_S)
    return bytes(answer[:most_bytes])


def _read(response: requests.Response, most_bytes: int, answer: bytearray) -> None:
    import requests

    # The status is known: judge by what came.
    with contextlib.suppress(requests.RequestException, OSError):
        for byte in response.iter_content(1):  # not more at once: it would wait until it has as many
            answer += byte
            if len(answer) >= most_bytes:
                break


def _why(error: BaseException) -> str:
    """Return why there was no answer, in words that hold nothing of the URL."""
    import socket
    import ssl

    import requests
    from urllib3.exceptions import HTTPError

    innermost, reason = error, None
    for _ in range(10):
        if isinstance(innermost, ssl.SSLCertVerificationError):
            return f"TLS: {innermost.verify_message}"
        if isinstance(innermost, ssl.SSLError):
            return f"TLS: {innermost.reason or 'handshake failed'}"
        if isinstance(innermost, socket.gaierror):
            return f"DNS: {innermost.strerror}"
        if isinstance(innermost, OSError) and innermost.errno and innermost.strerror:
            reason = innermost.strerror
        nested = getattr(innermost, "reason", None) or innermost.__cause__ or innermost.__context__
        arguments = (value for value in innermost.args if isinstance(value, HTTPError | OSError))
        following = nested if isinstance(nested, BaseException) else next(arguments, None)
        if following is None:
            break
        innermost = following
    if isinstance(error, requests.Timeout):
        return "timed out while connecting" if isinstance(error, requests.ConnectTimeout) else "timed out"
    return reason or type(innermost).__name__


def _origin(url: str) -> tuple[str, str, str]:
    """Return scheme, host and port: what a redirect must not change."""
    address = split(url)
    port = address.authority.rpartition("@")[2].rpartition("]")[2].rpartition(":")[2]
    named = port if port.isdigit() else ""
    return address.scheme, address.host, named or {"http": "80", "https": "443"}.get(address.scheme, "")


def _print(result: Mapping[str, Any]) -> None:
    with contextlib.suppress(OSError):  # who asked may be gone; the monitor knows nevertheless
        os.write(1, json.dumps(result).encode() + b"\n")
    os._exit(0)  # the watchdog may be about to print too, and there is nothing left to close


def _give_up(delivery: Delivery) -> None:
    _print(delivery.at_the_deadline())


if __name__ == "__main__":
    main()
