#!/bin/sh
# Verifies the bundle that it lies in: sh VERIFY.sh [SEQ:SHA256]...
# It needs sh, sha256sum and grep, ssh-keygen where checkpoints are signed, and nothing of runguard. README tells what it
# proves. Arguments are anchors: number and hash of an entry, as somebody else was told when it was written.

export LC_ALL=C
case $0 in */*) cd -- "${0%/*}" || exit 2 ;; esac
bad=0 entries=0 records=0 checkpoints=0 signed=0 known='' last=0

wrong() { bad=1 && printf 'WRONG  %s\n' "$1"; }
hash() { # of a line
    sum=$(
        sha256sum <<END
$1
END
    ) && sum=${sum%% *}
}
hash_of() { sum=$(sha256sum <"$1") && sum=${sum%% *}; } # of a file
hashes() { # of eight lines at once
    sha256sum - /dev/fd/3 /dev/fd/4 /dev/fd/5 /dev/fd/6 /dev/fd/7 /dev/fd/8 /dev/fd/9 <<A 3<<B 4<<C 5<<D 6<<E 7<<F 8<<G 9<<H
$1
A
$2
B
$3
C
$4
D
$5
E
$6
F
$7
G
$8
H
}
number() { # number NAME LINE: the first number of that name
    n=${2#*\""$1"\":} && n=${n%%[,\}]*}
    case $n in '' | 0?* | *[!0-9]* | ???????????*) n=0 ;; esac
}
lost() { # lost N: a recovery among the entries says that entry N was lost with a damaged store
    spans=$(grep -F '"kind":"recovery"' entries.jsonl | grep -oE '"lost":\[(\[[0-9]+,[0-9]+\],?)*' | grep -oE '[0-9]+,[0-9]+')
    for span in $spans; do
        [ "$1" -ge "${span%,*}" ] && [ "$1" -le "${span#*,}" ] && return 0
    done
    return 1
}
holds() { case $1 in *"$2"*) return 0 ;; esac && return 1; }
signature_holds() { # signature_holds FILE LINE
    if [ -e allowed_signers ]; then
        printf '%s\n' "$2" | ssh-keygen -Y verify -f allowed_signers -I runguard -n runguard-checkpoint -s "$1"
    else
        printf '%s\n' "$2" | ssh-keygen -Y check-novalidate -n runguard-checkpoint -s "$1"
    fi >/dev/null 2>&1
}

# Every file is what MANIFEST says, none is missing, and there are no others.
names='README|VERIFY\.sh|explanation\.(txt|html)|(entries|records|checkpoints)\.jsonl|allowed_signers|texts/[0-9a-f]{64}'
names="$names|checkpoints/([0-9]{10}|newer)|signatures/[0-9]{10}|lists/[0-9a-f-]{36}/(run|rejects|g[0-9]{5})|recovered/[0-9]{10}"
grep -vxE "[0-9a-f]{64}  ($names)" MANIFEST && wrong 'MANIFEST: these lines are no checksums of what is in a bundle'
found=$(sha256sum -c MANIFEST 2>&1 | grep -v ': OK$') && wrong "$found"
for file in README VERIFY.sh explanation.txt explanation.html entries.jsonl records.jsonl checkpoints.jsonl; do
    grep -q "  $file\$" MANIFEST || wrong "$file: it is not in MANIFEST"
done
for file in MANIFEST entries.jsonl records.jsonl checkpoints.jsonl; do
    copy=$(while IFS= read -r line; do printf '%s\n' "$line"; done <"$file" | sha256sum)
    [ "$copy" = "$(sha256sum <"$file")" ] || wrong "$file: it is not lines of text"
done
files=0
for file in * */* */*/* .[!.]* */.[!.]* */*/.[!.]* */*/*/*; do [ -f "$file" ] && files=$((files + 1)); done
if [ "$files" != "$(($(grep -c '' MANIFEST) + 1))" ]; then
    wrong 'MANIFEST does not name each file once'
    for file in * */* */*/* .[!.]* */.[!.]* */*/.[!.]* */*/*/*; do
        [ ! -f "$file" ] || [ "$file" = MANIFEST ] || grep -qF "  $file" MANIFEST || wrong "$file: it is not in MANIFEST"
    done
fi

# Each checkpoint names the one before it and the list of its entries, and its signature is of it.
before='' lists=' newer ' n=0
while IFS= read -r line || [ -n "$line" ]; do
    number seq "$line" && hash "$line" && checkpoints=$((checkpoints + 1)) && known="$known $n:$sum "
    if ! holds "$line" "$before"; then
        this=$n && number seq "${line#*'"previous"'}"
        if lost "$n"; then
            printf 'NOTE   checkpoint %s names checkpoint %s, which was lost with a damaged store\n' "$this" "$n"
        else
            wrong "checkpoints.jsonl: checkpoint $this does not name the one before it"
        fi
        n=$this
    fi
    before="\"previous\":{\"seq\":$n,\"sha256\":\"$sum\"}"
    file=$(printf %010d "$n") && lists="$lists$file " last=$n
    if [ -e "signatures/$file" ]; then
        signed=$((signed + 1))
        signature_holds "signatures/$file" "$line" || wrong "signatures/$file: it is not of checkpoint $n, or not checked"
    fi
    if [ -e "checkpoints/$file" ]; then
        hash_of "checkpoints/$file"
        holds "$line" "\"list_sha256\":\"$sum\"" || wrong "checkpoints/$file: checkpoint $n names another list"
    fi
done <checkpoints.jsonl
for file in checkpoints/* signatures/*; do
    [ ! -e "$file" ] || holds "$lists" " ${file#*/} " || wrong "$file: there is no such checkpoint"
done

# Each entry is in the list of a checkpoint.
after=0
while IFS= read -r line || [ -n "$line" ]; do
    number seq "$line" && hash "$line" && entries=$((entries + 1))
    [ "$n" -gt "$after" ] || wrong "entries.jsonl: entry $n is not in order"
    after=$n
    holds "$known" " $n:$sum " || grep -qxF "$sum  $(printf e%010d "$n")" checkpoints/[0-9]* 2>/dev/null ||
        if [ "$n" -gt "$last" ] && grep -qxF "$sum  $(printf e%010d "$n")" checkpoints/newer 2>/dev/null; then
            printf 'NOTE   entry %s is newer than the last checkpoint: an anchor alone can prove it\n' "$n"
        elif grep -qxF "$sum  $(printf e%010d "$n")" recovered/* 2>/dev/null; then
            printf 'NOTE   entry %s is proved since a damaged store was recovered, not since it was written\n' "$n"
        else
            wrong "entries.jsonl: entry $n is not the one that a checkpoint names"
        fi
done <entries.jsonl

# An entry names the list of entries whose checkpoint's list was lost with a damaged store.
for file in recovered/*; do
    [ -e "$file" ] || continue
    hash_of "$file" && n=${file#*/} && n=${n#"${n%%[!0]*}"}
    line=$(grep "^{\"v\":1,\"seq\":$n," entries.jsonl)
    { holds "$line" '"kind":"recovery"' && holds "$line" "\"list_sha256\":\"$sum\""; } ||
        wrong "$file: no recovery names this list"
done

# An entry names the list of all records of each run, and that one the lists of its groups.
for run in lists/*; do
    [ -e "$run" ] || continue
    [ -e "$run/run" ] || { wrong "$run/run: the list of the run is missing" && continue; }
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
flush() { # flush LINE...: hash these lines, at most eight, which have these `names`
    for sum in $(hashes "$@"); do
        case $sum in - | /*) continue ;; esac
        [ -n "$names" ] || break # there are fewer than eight
        mine="$mine$sum  ${names%% *}
" names=${names#* }
    done
    [ -z "$names" ] || wrong "records.jsonl: not hashed: $names"
    names=''
}
judge() { # the records of a group are those in its list
    list=lists/$group && [ -f "$list" ] || list=/dev/null
    found=$(printf %s "$mine" | grep -vxFf "$list") &&
        wrong "records.jsonl: these of run ${group%/*} are not those that were listed: $found"
    mine=''
}
check_records() {
    group='' mine='' names='' seen=' ' last=''
    while IFS= read -r line || [ -n "$line" ]; do
        run=${line#*\"run\":\"} && run=${run%%\"*}
        number seq "$line" && records=$((records + 1))
        case $run in '' | *[!0-9a-f-]*) wrong "records.jsonl: a record of no run" && continue ;; esac
        at=0000$(((n + 99) / 100)) name=000000$n
        at=$run/g${at#"${at%?????}"}
        if [ "$run" != "$last" ]; then
            holds "$seen" " $run " && wrong "records.jsonl: the records of run $run are not in order"
            seen="$seen$run " last=$run after=0
        fi
        [ "$n" -gt "$after" ] || wrong "records.jsonl: record $n of run $run is not in order"
        after=$n
        if [ "$#" = 8 ] || [ "$at" != "$group" ]; then
            [ "$#" = 0 ] || flush "$@"
            set --
        fi
        [ "$at" = "$group" ] || { [ -z "$group" ] || judge && group=$at; }
        names="$names${name#"${name%???????}"} "
        set -- "$@" "$line"
    done <records.jsonl
    [ "$#" = 0 ] || { flush "$@" && judge; }
}
check_records

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
