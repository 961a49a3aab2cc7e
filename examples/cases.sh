#!/bin/sh
# A job in shell that handles cases and says of each what it is about to do and what came of it.
#   30 2 * * *  runguard run -j closing -s '30 2 * * *' -z Europe/London -- /opt/closing/cases.sh
# With -e it stops where an entry cannot be written: a job that cannot explain itself stops acting.
set -eu
: "${RUNGUARD_ITEMS:?start me through runguard run}"

for case in HB-2001 HB-2002 HB-2003; do
    # Done by an earlier attempt? One id a line.
    if [ -n "${RUNGUARD_DONE:-}" ] && grep -Fqx -e "$case" "$RUNGUARD_DONE"; then
        continue
    fi
    runguard item "$case" --phase intent --action close --rule R12 --reason 'Paid in full.'
    if echo "$case" >>"${LEDGER:-closed}"; then
        runguard item "$case" --phase result --action close --result=done
    else
        runguard item "$case" --phase result --action close --result=failed
    fi
done

# Many at once: one line of JSON each, for the price of one command.
for case in HB-2004 HB-2005; do
    printf '{"case":"%s","phase":"result","action":"close","result":"skipped","reason":"Not due."}\n' "$case"
done | runguard item --batch
