#!/usr/bin/env python3
"""The job of cases.py, killed half-way: after the letter about HB-1042 has gone out, before that is said.

killed.txt is what `runguard explain` then says of each of its cases.
"""

import os
import signal

import cases

send = cases.send


def send_and_die(case_id: str) -> None:
    """Put the letter into the outbox, and be killed by the kernel (for want of memory, say)."""
    send(case_id)
    if case_id == "HB-1042":
        os.kill(os.getpid(), signal.SIGKILL)


cases.send = send_and_die
cases.main()
