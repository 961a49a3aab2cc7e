#!/bin/sh
# A job that works on its window and not on "today": run again months later it does the same.
#   30 2 * * *  runguard run -j extract -s '30 2 * * *' -z Europe/London -- /opt/extract/window.sh
set -eu
: "${RUNGUARD_WINDOW_START:?start me through runguard run with a schedule}"
echo "extracting records from $RUNGUARD_WINDOW_START up to $RUNGUARD_WINDOW_END (attempt $RUNGUARD_ATTEMPT)"
