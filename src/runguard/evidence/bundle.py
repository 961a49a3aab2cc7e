"""An evidence bundle: what is on record of a case or a job, with all that a stranger needs to check it by hand.

    README  VERIFY.sh  MANIFEST          what this is; checks it; SHA-256 of every other file, as sha256sum writes it
    explanation.txt  explanation.html    what runguard makes of it, for people
    entries.jsonl                        lines of the ledger, byte for byte
    records.jsonl                        record lines, byte for byte
    lists/RUN/run  gNNNNN  rejects       the lists of a run's records (evidence/lists.py)
    checkpoints.jsonl                    lines of checkpoints, from the first that names an entry to the newest
    checkpoints/NNNNNNNNNN               the lists of those that name entries of the bundle; newer: what none names yet
    recovered/NNNNNNNNNN                 the list of entries whose checkpoint's list was lost with a damaged store: the
                                         recovery, the entry of that number, names it
    signatures/NNNNNNNNNN                their signatures
    allowed_signers                      the public key
    texts/SHA256                         texts that the record names by hash, where they were added

Everything is written in a fixed order, so that the same record gives the same bytes. Memory is constant.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Iterator
from hashlib import sha256
from typing import IO, NamedTuple

from runguard.evidence import checkpoints, lists, mending, signing, telling
from runguard.evidence.selecting import Part, Selected
from runguard.store import items, recoveries
from runguard.store.reads import Reader

_PAGE = 1_000


class Written(NamedTuple):
    """What a bundle holds. `manifest_sha256` stands for all of it."""

    manifest_sha256: str
    entries: int
    records: int
    newer: tuple[int, ...]  # entries that no checkpoint names yet
    unnamed: tuple[str, ...]  # texts that neither entries nor records name


class Given(NamedTuple):
    """What goes into a bundle besides the record."""

    public_key: str | None
    texts: tuple[tuple[str, bytes], ...]  # SHA-256 and text


def write(directory: str, reader: Reader, selected: Selected, given: Given, advance: Callable[[int], None]) -> Written:
    """Write the bundle into an empty directory; `advance` counts records. Raises OSError and StoreError."""
    bundle = _Bundle(directory)
    unnamed = {digest for digest, _ in given.texts}
    entries = _write_entries(bundle, reader, selected, unnamed)
    newer, keys = _write_checkpoints(bundle, reader, entries)
    records = 0
    with bundle.open("records.jsonl") as file:
        for part in selected.parts:
            for line in _records(reader, part):
                file.write(line)
                _look_for(unnamed, line)
                records += 1
                advance(1)
    for part in selected.parts:
        _write_lists(bundle, reader, part)
    if signers := _signers(given.public_key, keys):
        bundle.write("allowed_signers", signers)
    for digest, text in given.texts:
        bundle.write(f"texts/{digest}", text)
    _write_words(bundle, reader, selected, records)
    return Written(bundle.close(), len(entries), records, newer, tuple(sorted(unnamed)))


class _Bundle:
    """A directory that is filled: every file is hashed as it is written."""

    def __init__(self, directory: str) -> None:
        self._directory = directory
        self._digests: dict[str, str] = {}

    def write(self, name: str, *pieces: bytes) -> None:
        with self.open(name) as file:
            for piece in pieces:
                file.write(piece)

    def open(self, name: str) -> _File:
        path = self._directory
        for folder in name.split("/")[:-1]:
            path = os.path.join(path, folder)
            if not os.path.isdir(path):
                os.mkdir(path, 0o700)
        return _File(os.path.join(self._directory, name), lambda digest: self._digests.__setitem__(name, digest))

    def close(self) -> str:
        """Write MANIFEST and return its SHA-256."""
        text = "".join(f"{self._digests[name]}  {name}\n" for name in sorted(self._digests)).encode("ascii")
        self.write("MANIFEST", text)
        return sha256(text).hexdigest()


class _File:
    def __init__(self, path: str, tell: Callable[[str], None]) -> None:
        fd = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC, 0o600)
        self._file: IO[bytes] = open(fd, "wb")  # noqa: SIM115
        self._hash = sha256()
        self._tell = tell

    def write(self, data: bytes) -> None:
        self._file.write(data)
        self._hash.update(data)

    def __enter__(self) -> _File:
        return self

    def __exit__(self, *_: object) -> None:
        self._file.close()
        self._tell(self._hash.hexdigest())


def _look_for(digests: set[str], line: bytes) -> None:
    """Take the hashes that a line names out of `digests`."""
    digests -= {digest for digest in digests if digest.encode() in line}


def _write_entries(bundle: _Bundle, reader: Reader, selected: Selected, unnamed: set[str]) -> list[int]:
    """Write the lines that are there, and return their numbers."""
    found = []
    with bundle.open("entries.jsonl") as file:
        for seq in selected.entries:
            for (line,) in reader.rows("line_at", seq=seq):
                file.write(line)
                _look_for(unnamed, line)
                found.append(seq)
    return found


def _signers(public_key: str | None, keys: dict[str, None]) -> bytes:
    """Return whose signatures count, as ssh-keygen reads it: sign_key's first; that others signed is said."""
    ours = " ".join(public_key.split()[:2]) if public_key is not None else None
    told = [f"{signing.IDENTITY} {ours}\n"] if ours is not None else []
    doubt = "# not the key that this host signs with now: ask whose it is\n"
    told += [f"{doubt}{signing.IDENTITY} {key}\n" for key in keys if key != ours]
    return "".join(told).encode()


def _write_checkpoints(bundle: _Bundle, reader: Reader, entries: list[int]) -> tuple[tuple[int, ...], dict[str, None]]:
    """Write what proves these entries; return those that no checkpoint names yet, and the keys of the signatures."""
    left, keys = entries, dict[str, None]()
    known = recoveries.read(reader)
    with bundle.open("checkpoints.jsonl") as file:
        for seq, first_seq, last_seq, signature in reader.rows("checkpoints_about", seq=entries[0] if entries else 0):
            [line] = [line for (line,) in reader.rows("line_at", seq=seq)]
            file.write(line)
            if signature is not None:
                bundle.write(f"signatures/{seq:010d}", signature.encode("ascii", "replace"))
                keys |= dict.fromkeys(key for key in (signing.key_of(signature),) if key is not None)
            if left and left[0] <= last_seq:
                listed = b"".join(_entry_list(reader, seq, first_seq, last_seq))
                if not known.found or sha256(listed).hexdigest().encode() in line:
                    bundle.write(f"checkpoints/{seq:010d}", listed)
                left = [each for each in left if each > last_seq]
    if left:
        ((after, _),) = reader.rows("checkpointed")
        bundle.write("checkpoints/newer", *_listed(reader, after + 1, left[-1]))
    for each in known.found:
        if any(first <= seq <= last for seq in entries for first, last in each.listed):
            bundle.write(f"recovered/{each.seq:010d}", *mending.list_of(reader, each.listed))
    return tuple(left), keys


def _entry_list(reader: Reader, checkpoint_seq: int, first_seq: int, last_seq: int) -> Iterator[bytes]:
    for (digests,) in reader.rows("entry_list", seq=checkpoint_seq):
        hexes = (digests[at : at + 32].hex() for at in range(0, len(digests), 32))
        yield checkpoints.entry_list(first_seq, hexes)
        return
    yield from _listed(reader, first_seq, last_seq)


def _listed(reader: Reader, first_seq: int, last_seq: int) -> Iterator[bytes]:
    after = first_seq - 1
    while after < last_seq:
        page = reader.rows("lines_after", seq=after, page=min(_PAGE, last_seq - after))
        for seq, line in page:
            yield checkpoints.entry_list(seq, [sha256(line).hexdigest()])
        if not page:
            return
        after = page[-1][0]


def _records(reader: Reader, part: Part) -> Iterator[bytes]:
    """Yield the record lines of a part, in order; those that were lawfully removed are not there."""
    start_seq = part.run.start_seq
    if part.records is None:
        beyond = lists.number(start_seq, part.listed) + 1
        yield from (record.line for record in items.records(reader, lists.bounds(start_seq)[0], beyond))
        return
    for seq in part.records:
        number = lists.number(start_seq, seq)
        yield from (record.line for record in items.records(reader, number - 1, number + 1))


def _write_lists(bundle: _Bundle, reader: Reader, part: Part) -> None:
    """Write the list of the run, the lists of the groups that records are of, and that of rejected lines."""
    wanted = None if part.records is None else {(seq - 1) // lists.GROUP + 1 for seq in part.records}
    place = f"lists/{part.run.run_id}"
    with bundle.open(f"{place}/run") as file:
        for at, digests in enumerate(_groups(reader, part)):
            first_seq = at * lists.GROUP + 1
            file.write(lists.group_line(first_seq, digests))
            if wanted is None or at + 1 in wanted:
                bundle.write(f"{place}/g{at + 1:05d}", lists.group_list(first_seq, digests))
    if part.rejected:
        pieces = ((each.sha256, each.file_offset) for each in items.rejects(reader, part.run.start_seq))
        bundle.write(f"{place}/rejects", lists.reject_list(pieces))


def _groups(reader: Reader, part: Part) -> Iterator[bytes]:
    """Yield the digests of each group, as far as the list reaches."""
    size, left, open_group = lists.GROUP * lists.DIGEST_BYTES, part.listed * lists.DIGEST_BYTES, b""
    for digests in _digests(reader, part.run.start_seq):
        open_group += digests[:left]
        left -= len(digests[:left])
        while len(open_group) >= size:
            yield open_group[:size]
            open_group = open_group[size:]
        if not left:
            break
    if open_group:
        yield open_group


def _digests(reader: Reader, start_seq: int) -> Iterator[bytes]:
    """Yield the digests of a run's records: those that are on record, then of records whose digests are not yet."""
    first, beyond = lists.bounds(start_seq)
    count = 0
    for digests in items.digests(reader, first, beyond):
        count += len(digests) // lists.DIGEST_BYTES
        yield digests
    for record in items.records(reader, first + count, beyond):
        yield sha256(record.line).digest()


def _write_words(bundle: _Bundle, reader: Reader, selected: Selected, records: int) -> None:
    lines = list(telling.explanation(selected)) if selected.explained is not None else None
    told: Iterable[str] = lines if lines is not None else telling.overview(reader, selected)
    with bundle.open("explanation.txt") as text, bundle.open("explanation.html") as page:
        page.write(telling.page_head(selected.title).encode())
        for line in told:
            text.write(f"{line}\n".encode())
            page.write(telling.page_line(line).encode())
        page.write(telling.PAGE_END.encode())
    bundle.write("README", telling.readme(selected, records).encode())
    with open(os.path.join(os.path.dirname(__file__), "VERIFY.sh"), "rb") as script:
        bundle.write("VERIFY.sh", script.read())
