#!/bin/sh
# Verifies the bundle that it lies in: sh VERIFY.sh [SEQ:SHA256]...
# It needs sh, sha256sum and grep, ssh-keygen where checkpoints are signed, and nothing of runguard. README tells what it
# proves. Arguments are anchors: number and hash of an entry, as somebody else was told when it was written.

export LC_ALL=C
case $0 in */*) cd -- "${0%/*}" || exit 2 ;; esac
bad=0 entries=0 records=0 checkpoints=0 signed=0 known=''

wrong() { bad=1 && printf 'WRONG  %s\n' "$1"; }
hash() { # of a line
    sum=$(
        sha256sum <<END
$1
END
    ) && sum=${sum%% *}
}
hash_of() { sum=$(sha256sum <"$1") && sum=${sum%% *}; } # of a file
number() { # number NAME LINE: the first number of that name
    n=${2#*\""$1"\":} && n=${n%%[,\}]*}
    case $n in '' | 0?* | *[!0-9]* | ???????????*) n=0 ;; esac
}
holds() { case $1 in *"$2"*) return 0 ;; esac && return 1; }
signature_holds() { # signature_holds FILE LINE
    if [ -e allowed_signers ]; then
        printf '%s\n' "$2" | ssh-keygen -Y verify -f allowed_signers -I runguard -n runguard-checkpoint -s "$1"
    else
        printf '%s\n' "$2" | ssh-keygen -Y check-novalidate -n runguard-checkpoint -s "$1"
    fi >/dev/null 2>&1
}

# Every file is what MANIFEST says, and there are no others.
grep -vxE '[0-9a-f]{64}  [0-9A-Za-z][0-9A-Za-z._/-]*' MANIFEST && wrong 'MANIFEST: these lines are no checksums'
found=$(sha256sum -c MANIFEST 2>&1 | grep -v ': OK$') && wrong "$found"
files=0
for file in * */* */*/*; do [ -f "$file" ] && files=$((files + 1)); done
if [ "$files" != "$(($(grep -c '' MANIFEST) + 1))" ]; then
    wrong 'MANIFEST does not name each file once'
    for file in * */* */*/*; do
        [ -d "$file" ] || [ "$file" = MANIFEST ] || grep -q "  $file\$" MANIFEST || wrong "$file: it is not in MANIFEST"
    done
fi

# Each checkpoint names the one before it and the list of its entries, and its signature is of it.
before=''
while IFS= read -r line || [ -n "$line" ]; do
    number seq "$line" && hash "$line" && checkpoints=$((checkpoints + 1)) && known="$known $n:$sum "
    holds "$line" "$before" || wrong "checkpoints.jsonl: checkpoint $n does not name the one before it"
    before="\"previous\":{\"seq\":$n,\"sha256\":\"$sum\"}"
    file=$(printf %010d "$n")
    if [ -e "signatures/$file" ]; then
        signed=$((signed + 1))
        signature_holds "signatures/$file" "$line" || wrong "signatures/$file: it is not of checkpoint $n, or not checked"
    fi
    if [ -e "checkpoints/$file" ]; then
        hash_of "checkpoints/$file"
        holds "$line" "\"list_sha256\":\"$sum\"" || wrong "checkpoints/$file: checkpoint $n names another list"
    fi
done <checkpoints.jsonl

# Each entry is in the list of a checkpoint.
while IFS= read -r line || [ -n "$line" ]; do
    number seq "$line" && hash "$line" && entries=$((entries + 1))
    holds "$known" " $n:$sum " || grep -qxF "$sum  $(printf e%010d "$n")" checkpoints/[0-9]* 2>/dev/null ||
        if grep -qxF "$sum  $(printf e%010d "$n")" checkpoints/newer 2>/dev/null; then
            printf 'NOTE   entry %s is newer than the last checkpoint: an anchor alone can prove it\n' "$n"
        else
            wrong "entries.jsonl: entry $n is not the one that a checkpoint names"
        fi
done <entries.jsonl

# An entry names the list of all records of each run, and that one the lists of its groups.
for run in lists/*; do
    [ -d "$run" ] || continue
    for list in run:list rejects:rejected; do
        [ -e "$run/${list%:*}" ] || continue
        hash_of "$run/${list%:*}"
        grep -F "\"run_id\":\"${run#lists/}\"" entries.jsonl | grep -qF "\"${list#*:}_sha256\":\"$sum\"" ||
            wrong "$run/${list%:*}: no entry names this list"
    done
    found=$(cd "$run" && for file in g*; do [ ! -e "$file" ] || sha256sum "$file"; done | grep -vxFf run) &&
        wrong "$run: the list of the run names these groups otherwise: $found"
done

# Each record is in the list of its group.
group='' list=''
while IFS= read -r line || [ -n "$line" ]; do
    run=${line#*\"run\":\"} && run=${run%%\"*}
    number seq "$line" && hash "$line" && records=$((records + 1))
    case $run in '' | *[!0-9a-f-]*) wrong "records.jsonl: a record of no run" && continue ;; esac
    file=lists/$run/$(printf g%05d $(((n + 99) / 100)))
    if [ "$file" != "$group" ]; then
        group=$file list=''
        [ ! -e "$file" ] || list=$(grep '' "$file")
    fi
    holds "$list" "$sum  $(printf %07d "$n")" || wrong "records.jsonl: record $n of run $run is not the one that was listed"
done <records.jsonl

# Texts that were added are those whose hashes the record names.
for file in texts/*; do
    [ -e "$file" ] || continue
    hash_of "$file"
    { [ "$file" = "texts/$sum" ] && grep -qF "$sum" entries.jsonl records.jsonl; } ||
        wrong "$file: the record names no such text"
done

for anchor in "$@"; do
    n=${anchor%%:*} && sum=${anchor#*:}
    if holds "$known" " $anchor " || grep -qxF "$sum  $(printf e%010d "$n" 2>/dev/null)" checkpoints/* 2>/dev/null; then
        printf 'ANCHOR %s holds\n' "$anchor"
    else
        wrong "anchor $anchor: this bundle has no such entry, or another one of that number"
    fi
done

hash_of MANIFEST
[ "$bad" = 0 ] || { printf 'This bundle does not hold.\n' && exit 1; }
count() { printf '%s %s' "$1" "$2" && [ "$1" = 1 ] || printf s; }
counts=$(count "$records" record && printf ', ' && count "$checkpoints" checkpoint)
printf 'OK     %s entries, %s (%s signed)\n' "$entries" "$counts" "$signed"
printf 'OK     SHA-256 of MANIFEST: %s\n' "$sum"
