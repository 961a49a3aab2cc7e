"""Signatures of checkpoints, made and checked by ssh-keygen: what a third party has too."""

from __future__ import annotations

import base64
import os
import tempfile
from collections.abc import Mapping

from runguard import programs

NAMESPACE = "runguard-checkpoint"
IDENTITY = "runguard"
_PATIENCE_S = 10.0


def sign(key: str, line: bytes, environ: Mapping[str, str]) -> str:
    """Return the signature of a line by the private key in the file `key`.

    Raises ValueError with why it could not be made: there is no ssh-keygen, or the key is none or has a passphrase.
    """
    signed = _ssh_keygen("-Y", "sign", "-q", "-f", key, "-n", NAMESPACE, environ=environ, given=line)
    return signed.decode("ascii", "replace")


def flaw(line: bytes, signature: str, public_key: str | None, environ: Mapping[str, str]) -> str:
    """Return "" where the signature is that of `line`, by `public_key` where it is given; else why it is not."""
    with tempfile.TemporaryDirectory() as directory:
        path = os.path.join(directory, "signature")
        with open(path, "w", encoding="ascii", errors="replace") as file:
            file.write(signature)
        arguments = ["-Y", "check-novalidate", "-n", NAMESPACE, "-s", path]
        if public_key is not None:
            allowed = os.path.join(directory, "allowed")
            with open(allowed, "w", encoding="utf-8") as file:
                file.write(f"{IDENTITY} {public_key}\n")
            arguments = ["-Y", "verify", "-f", allowed, "-I", IDENTITY, "-n", NAMESPACE, "-s", path]
        try:
            _ssh_keygen(*arguments, environ=environ, given=line)
        except ValueError as error:
            return str(error)
    return ""


def public_key(key: str, environ: Mapping[str, str]) -> str:
    """Return the public part of the private key in the file `key`, from `key`.pub where that exists.

    Raises ValueError with why it cannot be had.
    """
    try:
        with open(f"{key}.pub", encoding="utf-8") as file:
            return file.read().strip()
    except OSError:
        return _ssh_keygen("-y", "-f", key, environ=environ).decode("utf-8", "replace").strip()


def key_of(signature: str) -> str | None:
    """Return the public key that a signature says it is by, as `TYPE BASE64`, or None where it is none.

    The format is OpenSSH's PROTOCOL.sshsig: a magic word, a version, the key with its length before it.
    """
    body = "".join(line for line in signature.splitlines() if not line.startswith("-----"))
    try:
        blob = base64.b64decode(body, validate=True)
        size = int.from_bytes(blob[10:14], "big")
        key = blob[14 : 14 + size]
        kind = key[4 : 4 + int.from_bytes(key[:4], "big")].decode("ascii")
    except ValueError:
        return None
    sound = blob.startswith(b"SSHSIG") and len(key) == size and kind.isprintable() and len(kind.split()) == 1
    return kind + " " + base64.b64encode(key).decode("ascii") if sound else None


def _ssh_keygen(*arguments: str, environ: Mapping[str, str], given: bytes = b"") -> bytes:
    # A key with a passphrase must not ask for it: nobody is there.
    environ = {**environ, "SSH_ASKPASS_REQUIRE": "never"}
    try:
        done = programs.run(["ssh-keygen", *arguments], environ, given=given, patience_s=_PATIENCE_S)
    except FileNotFoundError:
        raise ValueError("ssh-keygen is not installed") from None
    except OSError as error:
        raise ValueError(f"ssh-keygen: {error}") from error
    if done.status != 0:
        raise ValueError(f"ssh-keygen: {done.last_word}")
    return done.out
