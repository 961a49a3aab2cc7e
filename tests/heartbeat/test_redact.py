"""What is masked, what is not, and that no text makes it slow."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from runguard.heartbeat.redact import (
    is_secret_name,
    mask_argv,
    mask_bytes,
    mask_text,
    mask_url,
    secrets_of,
)

UUID = "5bf66975-d4c7-4bf5-bcc8-b8d8a82ea278"
KEY = "fqOOd6-F4MMNuCEnzTU01w"


@pytest.mark.parametrize(
    ("url", "shown"),
    [
        (f"https://hc-ping.com/{UUID}", "https://hc-ping.com/…ea278"),
        (f"https://hc-ping.com/{UUID}/", "https://hc-ping.com/…ea278"),
        (f"https://hc-ping.com/{UUID}?create=1", "https://hc-ping.com/…ea278"),
        (f"https://user:pass@m.example:8443/ping/{UUID}", "https://m.example:8443/…ea278"),
        (f"https://m.example/ping/{KEY}/letters", "https://m.example/…"),
        ("https://m.example/abcdef", "https://m.example/…"),
        ("https://m.example/?token=hunter2hunter2", "https://m.example/…"),
        ("https://m.example", "https://m.example/…"),
        (UUID, "…ea278"),
        ("hunter2", "…"),
        ("", "…"),
        ("https://m\x1b[31m.example/x", "https://m?[31m.example/…"),
    ],
)
def test_a_url_is_shown_by_its_host_and_end(url, shown):
    assert mask_url(url) == shown


@pytest.mark.parametrize(
    "name",
    [
        "TOKEN", "GITHUB_TOKEN", "client_secret", "DB_PASSWORD", "PASSWD", "RESTIC_PASSWORD", "BORG_PASSPHRASE",
        "AWS_SECRET_ACCESS_KEY", "API_KEY", "apikey", "AZURE_CREDENTIALS", "BASIC_AUTH", "AUTHORIZATION",
        "HTTP_AUTHORIZATION", "OAUTH2_REFRESH", "SENTRY_DSN", "MYSQL_PWD", "SMTP_PASS", "PASS",
        "--password", "--api-key", "--auth-token", "spring.datasource.password",
    ],
)  # fmt: skip
def test_a_name_says_that_its_value_is_secret(name):
    assert is_secret_name(name)


@pytest.mark.parametrize(
    "name",
    [
        "PATH", "HOME", "PWD", "OLDPWD", "LANG", "SSH_AUTH_SOCK", "XAUTHORITY", "GIT_AUTHOR_NAME", "GIT_AUTHOR_EMAIL",
        "AUTHOR", "KEYMAP", "KEYBOARD", "GNOME_KEYRING_CONTROL", "CREDENTIALS_DIRECTORY", "DB_PASSWORD_FILE",
        "AWS_ACCESS_KEY_ID", "TOKEN_TTL", "--password-file", "--token-type", "--keep", "--keyfile", "COMPASS",
    ],
)  # fmt: skip
def test_a_name_that_only_looks_like_it_is_left_alone(name):
    assert not is_secret_name(name)


def test_secrets_are_the_long_values_of_secret_names_longest_first():
    environ = {
        "DB_PASSWORD": "hunter2",
        "API_TOKEN": "0123456789abcdef",
        "PIN_SECRET": "12345",  # five characters
        "AUTH": "enabled",
        "HOME": "/home/letters",
        "RUNGUARD_WINDOW_KEY": "L2024-03-10T02:30",
    }
    assert secrets_of(environ) == ("0123456789abcdef", "hunter2")


def test_the_ping_url_and_its_key_are_secrets_but_not_the_slug():
    url = f"https://m.example/ping/{KEY}/nightly-database-backup"
    found = secrets_of({}, url)
    assert url in found
    assert KEY in found
    assert "nightly-database-backup" not in found


@pytest.mark.parametrize(
    ("url", "key"),
    [
        ("https://nosnch.in/c2354d53d2", "c2354d53d2"),
        ("https://status.example/api/push/a1B2c3D4e5?status=up&msg=OK&ping=", "a1B2c3D4e5"),
        ("https://cronitor.link/p/0123456789abcdef/nightly-database-backup", "0123456789abcdef"),
        ("https://m.example/hook?token=hunter2hunter2&run={run_id}", "hunter2hunter2"),
        ("http://ann:hunter2@gateway.example:9091/metrics/job/letters", "hunter2"),
    ],
)
def test_the_key_in_every_address_is_a_secret_and_nothing_beside_it(url, key):
    found = secrets_of({}, "https://m.example/first", url)
    assert {"https://m.example/first", url, key} <= set(found)
    assert {"nightly-database-backup", "{run_id}"} & set(found) == set()


def test_the_ping_url_of_the_environment_is_a_secret():
    assert UUID in secrets_of({"RUNGUARD_PING": f"https://hc-ping.com/{UUID}"})


@pytest.mark.parametrize(
    ("text", "masked"),
    [
        ("nothing to see", "nothing to see"),
        ("login with hunter2 failed", "login with *** failed"),
        ("hunter2hunter2", "******"),
        ("postgres://app:s3cr@t@db/letters", "postgres://***@db/letters"),
        ("https://:pw@h/x", "https://***@h/x"),
        ("https://ghp_0123456789abcdef0123@github.com/a", "https://***@github.com/a"),
        ("ssh://git@github.com/a", "ssh://git@github.com/a"),
        ("http://h:8080/a@b", "http://h:8080/a@b"),
        ("Authorization: Bearer eyJhbGci.eyJzdWIi.abc-_", "Authorization: Bearer ***"),
        ("authorization: Basic dXNlcjpwYXNz", "authorization: Basic ***"),
        ("curl -H 'bearer abcdefgh12'", "curl -H 'bearer ***'"),
        ("basic understanding, bearer of news", "basic understanding, bearer of news"),
        ("+ PGPASSWORD=abc psql", "+ PGPASSWORD=*** psql"),
        ('client_secret="a b c" next', "client_secret=*** next"),
        ("GET /x?access_token=abc&page=2", "GET /x?access_token=***&page=2"),
        ("token_count=", "token_count="),
        ("author=Bob monkey=3", "author=Bob monkey=3"),
    ],
)
def test_text_is_masked_by_value_and_by_shape(text, masked):
    assert mask_text(text, ("hunter2",)) == masked


BEGIN, END = "-----BEGIN RSA PRIVATE KEY-----", "-----END RSA PRIVATE KEY-----"


@pytest.mark.parametrize(
    ("text", "masked"),
    [
        (f"a\n{BEGIN}\nMIIE\nabcd\n{END}\nb", f"a\n{BEGIN}***{END}\nb"),
        (f"a\n{BEGIN}\nMIIE\nabcd", f"a\n{BEGIN}***"),
        (f"MIIE\nabcd\n{END}\nb", f"***{END}\nb"),
        (f"{BEGIN}\nx\n{END}\n-\n{BEGIN}\ny\n{END}", f"{BEGIN}***{END}\n-\n{BEGIN}***{END}"),
        (
            "-----BEGIN REPORT-----\n3 letters\n-----END REPORT-----",
            "-----BEGIN REPORT-----\n3 letters\n-----END REPORT-----",
        ),
        ("-----BEGIN CERTIFICATE-----\nthe rest of the log", "-----BEGIN CERTIFICATE-----\nthe rest of the log"),
    ],
)
def test_pem_blocks_are_masked_even_when_half_of_one_is_seen(text, masked):
    assert mask_text(text, ()) == masked


def test_the_users_patterns_mask_what_they_match():
    assert mask_text("patient NHS-123-456 seen", (), (r"NHS-\d{3}-\d{3}",)) == "patient *** seen"


def test_a_pattern_that_matches_nothing_inserts_nothing():
    assert mask_text("abc", (), ("x*",)) == "abc"


def test_bytes_that_are_no_text_come_through_unchanged():
    assert mask_bytes(b"\xff\x00 hunter2 \xc3", ("hunter2",)) == b"\xff\x00 *** \xc3"


def test_a_secret_of_several_lines_is_masked_line_by_line():
    secrets = secrets_of({"TLS_KEY": "first-line-of-a-key\nsecond-line-of-it-"})
    assert mask_text("  second-line-of-it-\n", secrets) == "  ***\n"


@pytest.mark.parametrize(
    ("argv", "masked"),
    [
        (("send", "--all"), ("send", "--all")),
        (("send", "--password=x"), ("send", "--password=***")),
        (("send", "--password", "x"), ("send", "--password", "***")),
        (("send", "--api-key", "abcdef", "b"), ("send", "--api-key", "***", "b")),
        (("send", "-token", "abc"), ("send", "-token", "***")),
        (("env", "PGPASSWORD=x", "psql"), ("env", "PGPASSWORD=***", "psql")),
        (("send", "--password", "--all"), ("send", "--password", "--all")),
        (("send", "--no-password", "all"), ("send", "--no-password", "all")),
        (("send", "--password="), ("send", "--password=")),
        (("ssh", "--key", "/etc/k.pem"), ("ssh", "--key", "/etc/k.pem")),
        (("ssh", "--tls-key=server.key"), ("ssh", "--tls-key=server.key")),
        (("sort", "--key", "2", "f"), ("sort", "--key", "2", "f")),
        (("sort", "--key=2,2n"), ("sort", "--key=2,2n")),
        (("send", "--password-file", "pw.txt"), ("send", "--password-file", "pw.txt")),
        (("git", "commit", "--author", "Bob Builder"), ("git", "commit", "--author", "Bob Builder")),
        (("send", "hunter2hunter"), ("send", "***")),
        (("curl", f"https://hc-ping.com/{UUID}"), ("curl", "***")),
        (("curl", f"https://other.example/{UUID}/start"), ("curl", "https://other.example/***/start")),
        (("sh", "-c", "psql postgres://a:b@c/d"), ("sh", "-c", "psql postgres://***@c/d")),
    ],
)
def test_a_command_line_is_masked(argv, masked):
    environ = {"DB_PASSWORD": "hunter2hunter"}
    url = f"https://hc-ping.com/{UUID}"
    assert mask_argv(argv, secrets_of(environ, url)) == (masked, masked != argv)


def test_a_command_line_is_masked_by_the_users_patterns():
    assert mask_argv(("send", "NHS-123"), (), (r"NHS-\d+",)) == (("send", "***"), True)


SECRET = st.text(st.characters(codec="utf-8", exclude_characters="*"), min_size=6, max_size=40)
SURROUNDING = st.text(max_size=40)


@given(before=SURROUNDING, secret=SECRET, between=SURROUNDING, after=SURROUNDING)
def test_no_secret_of_the_environment_survives(before, secret, between, after):
    secrets = secrets_of({"APP_TOKEN": secret})
    text = before + secret + between + secret + after
    if secret.lower() not in ("enabled", "disabled", "required", "optional", "default", "prompt"):
        assert secret not in mask_text(text, secrets)
        assert secret not in "\0".join(mask_argv(("run", text), secrets_of({"APP_TOKEN": secret}))[0])


@given(secret=st.text("abcdefgh0123456789", min_size=8), shape=st.sampled_from([
    "https://user:{}@host/", "Authorization: Bearer {}", f"{BEGIN}\n{{}}\n{END}", "API_TOKEN={}", "--password={}",
]))  # fmt: skip
def test_no_secret_in_a_known_shape_survives(secret, shape):
    assert secret not in mask_text(f"before {shape.format(secret)} after", ())


HOSTILE = [
    "a", "://", "://a:", "://:@", "bearer ", "token=", "token='", 'token="', "tokentoken", "authorization:",
    "-----BEGIN A KEY-----", "-----BEGIN A ", "-----END A KEY-----", "=", "\x1b", "secret_", "passw", " \t", "-",
    "://aaaaaaaaaaaaaaaaaaaaaaaaa", "bearer\t\t", 'authorization": "basic ',
]  # fmt: skip


@pytest.mark.parametrize("piece", HOSTILE)
@pytest.mark.usefixtures("no_hang")
def test_a_hostile_mebibyte_is_masked_without_hanging(piece):
    text = piece * (2**20 // len(piece))
    assert mask_text(f"{text} hunter2", ("hunter2",)).endswith("***")
