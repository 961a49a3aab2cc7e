"""A checkpoint of the ledger that is due: made, signed where there is a key, told outside where a command says how.

It comes after a run's end, lock and ping. Nothing here stops or delays a job, and every fault is said.
"""

from __future__ import annotations

from runguard import clock, programs
from runguard.errors import RunguardError
from runguard.evidence import checkpoints, signing
from runguard.store.lines import digest

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from runguard.evidence.checkpoints import Made
    from runguard.settings import Settings
    from runguard.store.database import Store

PATIENCE_S = 15.0  # for the anchor's command


def checkpoint(
    store: Store, settings: Settings, environ: Mapping[str, str], say: Callable[[str], None], upto_seq: int = 0
) -> list[Made]:
    """Make the checkpoints that are due, sign and anchor the last; `say` is told what did not work.

    Also where none is due, until one names the entry `upto_seq`.
    """
    try:
        with store.write() as tx:
            made = checkpoints.make(tx, clock.look().wall_us, upto_seq)
    except RunguardError as error:
        say(f"no checkpoint was made: {error}")
        return []
    for each in made:
        if settings.sign_key is not None:
            _sign(store, each, settings.sign_key, environ, say)
    if made and settings.anchor is not None:
        _anchor(store, made[-1], settings.anchor, environ, say)
    return made


def anchor_line(host: str, made: Made) -> str:
    """Return what is told outside of a checkpoint: `runguard checkpoint HOST SEQ:SHA256`."""
    return f"runguard checkpoint {host} {made.seq}:{digest(made.line)}\n"


def _sign(store: Store, made: Made, key: str, environ: Mapping[str, str], say: Callable[[str], None]) -> None:
    try:
        text = signing.sign(key, made.line, environ)
        with store.write() as tx:
            tx.send("insert_signature", {"seq": made.seq, "text": text})
    except (ValueError, RunguardError) as error:
        say(f"checkpoint {made.seq} is not signed: {error}")


def _anchor(store: Store, made: Made, command: str, environ: Mapping[str, str], say: Callable[[str], None]) -> None:
    """Run the anchor's command with the line on its stdin, and note what came of it."""
    error = None
    line = anchor_line(store.author.host, made).encode()
    try:
        done = programs.run(["/bin/sh", "-c", command], environ, given=line, patience_s=PATIENCE_S)
        if done.status != 0:
            error = f"status {done.status}: {done.last_word}" if done.err or done.out else done.last_word
    except OSError as failure:  # TimeoutError too
        error = str(failure)
    if error is not None:
        say(f"checkpoint {made.seq} was not anchored: {error}")
    try:
        with store.write() as tx:
            tx.send("insert_anchored", {"seq": made.seq, "at_us": clock.look().wall_us, "error": error})
    except RunguardError as failure:
        say(f"{failure}; what became of anchoring checkpoint {made.seq} is not recorded")
