"""runguard in a hurry: the same program, but pings have a second or two.

    python hurried.py run …             as `runguard run …`
    python hurried.py --at-once run …   the same, and the start is told at once

So that a test of a monitor that hangs does not take as long as a run that has one.
"""

import sys

from runguard.cli.fast import main
from runguard.guard import deadline, telling
from runguard.heartbeat import client

client.DEADLINE_S = 2.0
client.STOPPED_DEADLINE_S = 1.0
client.DELAYS_S = (0.05, 0.1, 0.2)
deadline.LEFT_FOR_SENDING_S = 1.0

if __name__ == "__main__":
    if sys.argv[1] == "--at-once":
        del sys.argv[1]
        telling.START_AFTER_S = 0.0
    main()
