#!/usr/bin/env python3
"""A job that handles cases and says of each what it is about to do, what came of it, and why.

30 2 * * *  runguard run -j reminders -s '30 2 * * *' -z Europe/London -- /opt/reminders/cases.py

Killed half-way, it leaves at most one case of which nobody knows; run again, it does what is left.
"""

import os

try:
    from runguard import items
except ImportError:
    import items  # type: ignore[import-not-found,no-redef]  # a copy of that one file, beside this job

RULE = {"id": "R7", "version": "3"}
# Each with the days since its first letter and whether it is on hold; your own come from a database.
CASES = {"HB-1041": (31, False), "HB-1042": (28, False), "HB-1043": (12, False), "HB-1044": (40, True)}


def main() -> None:
    """Send what is due, to each case once."""
    done, uncertain = items.done(), items.uncertain()
    left = {case_id: known for case_id, known in CASES.items() if case_id not in done}
    items.expected(len(left))
    for case_id, (days, on_hold) in left.items():
        # What is known before belongs to the intent: if the job dies now, it is all that there is.
        reason, inputs = f"No reply for {days} days.", {"days": {"value": days, "source": "register"}}
        with items.case(case_id, action="reminder", rule=RULE, reason=reason, inputs=inputs) as case:
            if case_id in uncertain and was_sent(case_id):
                case.done(reason="An earlier attempt had sent it: it is in the outbox.")
            elif on_hold:
                case.skipped(reason="The case is on hold.")
            elif days < 28:
                case.no_action(reason=f"Only {days} days since the first letter.")
            else:
                send(case_id)
                case.done(sent={"template": "reminder-2", "channel": "post"})


def send(case_id: str) -> None:
    """Put the letter into the outbox."""
    with open(os.environ.get("OUTBOX", "outbox"), "a", encoding="utf-8") as outbox:
        outbox.write(f"{case_id}\n")


def was_sent(case_id: str) -> bool:
    """Look whether the letter is in the outbox: an earlier attempt died before it could say so."""
    try:
        with open(os.environ.get("OUTBOX", "outbox"), encoding="utf-8") as outbox:
            return f"{case_id}\n" in outbox.readlines()
    except FileNotFoundError:
        return False


if __name__ == "__main__":
    main()
