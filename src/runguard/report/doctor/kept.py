"""The record: the store, its ledger, the witness, and what waits beside them."""

from __future__ import annotations

import os
from collections.abc import Iterator
from shlex import quote

from runguard import private
from runguard.errors import StoreError, reason
from runguard.evidence import signing
from runguard.guard import host
from runguard.heartbeat import spool as spooled
from runguard.instant import DAY_S, SECOND_US, rfc3339, span
from runguard.report.doctor.findings import Finding, against, fault, ok, unknown, warning
from runguard.report.doctor.world import World
from runguard.store import examining, faults, recoveries
from runguard.store.journal import RESERVE_BYTES, Journal, names
from runguard.store.sqlite import SCHEMA
from runguard.store.witness import Witness, look

_RECOVER = "runguard doctor --recover --reason TEXT"
_CHECKPOINT_DUE_US = 2 * DAY_S * SECOND_US  # one is made each day, if anything runs or verifies


def store(world: World) -> Iterator[Finding]:
    """It can be opened and is whole, as far as a quick check tells, and nobody else can write to it."""
    path = os.path.realpath(world.places.store)
    if examining.waits_to_be_undone(path):
        yield warning(f"{path}: a write that was cut off waits to be undone; it was not opened", "runguard status")
        return
    try:
        damage = examining.damage(path, world.places.witness)
    except StoreError as error:
        yield fault(str(error))
        return
    if damage:
        yield fault(f"{path}: {faults.without_advice(damage)}", _RECOVER)
        return
    try:
        found = os.lstat(path)
    except FileNotFoundError:
        account = host.actor({}).user
        whose = f"{world.places.state} (account {account}; each account has its own records)"
        missing = f"store {path}: there is no such file" if world.named else f"nothing has been recorded yet in {whose}"
        yield fault(missing) if world.named else ok(missing)
        return
    except OSError as error:
        yield fault(f"{path}: {reason(error)}")
        return
    if found.st_uid != os.geteuid():
        yield ok(f"{path}: it belongs to uid {found.st_uid}, and is only read here")
    elif flaw := private.file_flaw(found):
        yield fault(f"{path}: {flaw}", against(flaw, path))
    elif found.st_mode & 0o004:
        yield warning(f"{path}: everybody on this host may read it", f"chmod o-r {quote(path)}")
    yield ok(f"{path}: whole, schema {SCHEMA}, {_size(found.st_size)}")


def ledger(world: World) -> Iterator[Finding]:
    """Somebody verifies it, checkpoints are made, signed and told outside, as the configuration wants it."""
    if world.records is None:
        yield unknown("there is no record to look at")
        return
    if world.records.head() is None:
        yield ok("it has no entry yet")
        return
    yield from _verified(world)
    yield from _checkpoints(world)
    for each in recoveries.look(world.records).found:
        yield ok(each.sentence())


def _verified(world: World) -> Iterator[Finding]:
    assert world.records is not None
    ((since_us, problems),) = world.records.rows("verified_lately")
    limit_us = round(world.settings.verify_within_s * SECOND_US)
    if since_us is None:
        return
    ago = span(max(world.now_us - since_us, 0))
    if problems:
        yield fault(f"it did not verify {ago} ago", "runguard verify --full")
    elif limit_us and world.now_us - since_us > limit_us:
        yield warning(f"nobody has verified it for {ago}", "runguard verify")
    elif world.records.rows("last_verified"):
        yield ok(f"verified {ago} ago, without a finding")
    else:
        yield ok("not verified yet; a line in the crontab may do that daily: runguard verify")


def _checkpoints(world: World) -> Iterator[Finding]:
    assert world.records is not None
    ((upto_seq, at_us),) = world.records.rows("checkpointed")
    last = next((seq for seq, _ in world.records.rows("last_checkpoint")), None)
    if at_us is not None and world.now_us - at_us > _CHECKPOINT_DUE_US:
        made = "no checkpoint was ever made" if not upto_seq else f"the last checkpoint is of {rfc3339(at_us)}"
        yield warning(f"{made}; one is due each day", "runguard verify")
    elif last is not None:
        yield ok(f"checkpoint {last} of {rfc3339(at_us)}")
    key = world.settings.sign_key
    if key is not None:
        yield from _signing(world, key, last)
    if world.settings.anchor is not None:
        yield from _anchor(world)


def _signing(world: World, key: str, last: int | None) -> Iterator[Finding]:
    assert world.records is not None
    try:
        signing.sign(key, b"runguard doctor\n", world.environ)
    except ValueError as error:
        yield fault(
            f"sign_key: {error}", f"ssh-keygen -t ed25519 -N '' -f {quote(key)}" if not os.path.exists(key) else None
        )
        return
    if last is not None and not world.records.rows("signature", seq=last):
        yield warning(f"sign_key: it can sign, and checkpoint {last} is not signed: the next one will be")
    else:
        yield ok(f"sign_key: {key} signs checkpoints")


def _anchor(world: World) -> Iterator[Finding]:
    assert world.records is not None
    told = world.records.rows("last_anchored")
    if not told:
        yield unknown("anchor: nothing was told yet; the next checkpoint will be")
    for seq, at_us, error in told:
        if error is not None:
            yield warning(f"anchor: checkpoint {seq} was not told: {error}")
        else:
            yield ok(f"anchor: checkpoint {seq} was told on {rfc3339(at_us)}")


def witness(world: World) -> Iterator[Finding]:
    """It is there, nobody else could have written it, and the ledger knows what it has seen."""
    path = os.path.realpath(world.places.store)
    kept = Witness(world.places.witness, path)
    seen, damage = look(kept)
    if isinstance(damage, PermissionError):
        yield unknown(f"{kept.path}: not to be read by this account")
        return
    if damage is not None:
        text = f"{kept.path}: {reason(damage)}; it cannot tell whether history was lost"
        yield fault(
            text,
            against(str(damage), os.path.dirname(kept.path)) or f"mv {quote(kept.path)} {quote(kept.path)}.damaged",
        )
        return
    head = world.records.head() if world.records else None
    if seen is None and head is None:
        yield ok("nothing has been recorded yet, and it knows of nothing")
    elif seen is None:
        yield warning(f"{kept.path}: there is none; until the next start writes it, nobody notices a store set back")
    elif head is None or world.records is None:
        yield unknown(f"{kept.path}: it saw entry {seen.seq}, and the store cannot be asked")
    else:
        try:
            world.records.compare(seen, world.records.last_line(), kept)
            yield ok(f"{kept.path}: it saw entry {seen.seq}, which the ledger has")
        except StoreError as error:
            yield fault(faults.without_advice(error.why), _RECOVER)


def journal(world: World) -> Iterator[Finding]:
    """Nothing waits in it, nothing was kept aside, and there is room claimed for a full disk."""
    kept = Journal(world.places.state, host.author(world.environ))
    if not os.path.isdir(kept.directory):
        yield ok("empty: nothing was ever recorded in it")
        return
    try:
        if flaw := private.flaw(kept.directory, os.stat(world.places.state).st_uid):
            yield fault(f"{kept.directory}: {flaw}; it is not used", against(flaw, kept.directory))
            return
    except OSError as error:
        yield unknown(f"{kept.directory}: {reason(error)}")
        return
    found = names(kept.directory) if world.writable else _listed(kept.directory)
    waiting = [name for name in found if name.endswith(".jsonl")]
    if kept.pending():
        files = f"{len(waiting)} file{'s' * (len(waiting) != 1)}" if waiting else "the reserve"
        yield warning(f"{kept.directory}: records wait in {files} for the store", "runguard status")
    for name in found:
        if name.endswith(".rejected"):
            yield warning(f"{kept.directory}/{name}: what could not be brought over is kept there; look at it")
    yield from _reserve(kept)
    if not kept.pending() and len(waiting) == len(found):
        yield ok(f"{kept.directory}: empty")


def _reserve(kept: Journal) -> Iterator[Finding]:
    try:
        found = os.lstat(kept.reserve)
    except OSError as error:
        yield warning(f"{kept.reserve}: {reason(error)}; until the next start makes it, a full disk leaves no trace")
        return
    if found.st_uid == os.geteuid() and (flaw := private.file_flaw(found)):
        yield fault(f"{kept.reserve}: {flaw}", against(flaw, kept.reserve))
    elif found.st_size < RESERVE_BYTES or found.st_blocks * 512 < RESERVE_BYTES:
        claimed = _size(found.st_blocks * 512)
        yield warning(f"{kept.reserve}: only {claimed} of it are claimed; the next start claims more")


def spool(world: World) -> Iterator[Finding]:
    """No outcome waits there that a monitor has not heard."""
    directory = world.places.spool
    if flaw := spooled.flaw(directory):
        level = unknown if not world.writable else fault
        yield level(f"{directory}: {flaw}", against(flaw, directory) if world.writable else None)
        return
    waiting = spooled.slots(directory)
    for slot in waiting:
        late = span(max(world.now_us - slot.at_us, 0))
        text = f"{slot.job}: a {slot.event} of {late} ago was not delivered: {slot.why}"
        yield warning(text, "runguard ping", job=slot.job)
    damaged = [name for name in _listed(directory) if name.endswith(".damaged")]
    for name in damaged:
        yield warning(f"{directory}/{name}: it could not be read and is kept; look at it, and remove it")
    if not waiting and not damaged:
        yield ok("no outcome waits for a monitor")


def _listed(directory: str) -> list[str]:
    try:
        return sorted(os.listdir(directory))
    except OSError:
        return []


def _size(size_bytes: int) -> str:
    for unit, factor in (("GiB", 1 << 30), ("MiB", 1 << 20), ("KiB", 1 << 10)):
        if size_bytes >= factor:
            return f"{size_bytes / factor:.1f} {unit}"
    return f"{size_bytes} bytes"
