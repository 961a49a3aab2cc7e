# shellcheck shell=sh disable=SC2034
# Sourced by examples/try, tests/run, benchmarks/run and .ci/run: one way to make the virtual environment.
# Sets `python`. Needs nothing but python3 with its venv module and a package index.

say() { printf '== %s\n' "$*"; }

fail() {
    printf 'error: %s\n' "$*" >&2
    exit 1
}

# make_environment DIRECTORY WHAT...: a virtual environment with WHAT installed by pip, made again when pyproject.toml changed.
make_environment() {
    directory=$1
    shift
    python=$directory/bin/python
    if [ -e "$directory/made" ] && [ "$directory/made" -nt pyproject.toml ] && [ -x "$python" ]; then
        say "using the virtual environment in $directory"
        return
    fi
    command -v python3 >/dev/null || fail "python3 is missing; on Debian: apt-get install python3 python3-venv"
    python3 -c 'import sys; sys.exit(sys.version_info < (3, 11))' || fail "python3 is older than 3.11: $(python3 --version)"
    say "making a virtual environment in $directory"
    rm -rf "$directory"
    python3 -m venv "$directory" || fail "no virtual environment; on Debian: apt-get install python3-venv"
    say "installing: $*"
    "$python" -m pip install --quiet --disable-pip-version-check "$@" ||
        fail "pip could not install: its own words stand above. It needs a network, or a package index within reach"
    touch "$directory/made"
}
