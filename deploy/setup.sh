#!/bin/sh
# Makes .venv ready from the hashed requirements: `deploy/setup.sh run` (what Strobe needs) or `deploy/setup.sh dev` (tests and linters too).
# Does nothing that is already done. Names everything that is missing, and the one command that gets it. Never asks, never becomes root.
set -eu
cd "$(dirname "$0")/.."
kind=${1:-run}
venv=.venv
OLDEST='3, 11'

case $kind in
    run) lock=requirements.lock ;;
    dev) lock=requirements-dev.lock ;;
    *) echo "usage: deploy/setup.sh run|dev" >&2; exit 2 ;;
esac
stamp=$venv/.strobe-$kind
sum=$(cat "$lock" pyproject.toml setup.py | cksum)
if [ -f "$stamp" ] && [ "$(cat "$stamp")" = "$sum" ] && command -v make >/dev/null && command -v "${CC:-cc}" >/dev/null && "$venv/bin/python" -c "" 2>/dev/null; then
    exit 0
fi

say() { printf '%s\n' "$*" >&2; }
new_enough() { "$1" -c "import sys; raise SystemExit(sys.version_info < ($OLDEST))" >/dev/null 2>&1; }

find_python() {
    for name in "${PYTHON:-python3}" python3 python3.14 python3.13 python3.12 python3.11; do
        if command -v "$name" >/dev/null 2>&1 && new_enough "$name"; then command -v "$name"; return; fi
    done
}

find_uv() { command -v uv 2>/dev/null || { [ -x "$HOME/.local/bin/uv" ] && echo "$HOME/.local/bin/uv"; } || true; }

# The newest Python that this machine's package manager offers, as a package name.
offered_python() {
    command -v apt-cache >/dev/null 2>&1 || return 0
    apt-cache policy python3.14 python3.13 python3.12 python3.11 2>/dev/null |
        awk '/^python/ { name = $1; sub(":", "", name) } /Candidate:/ && $2 != "(none)" { print name; exit }'
}

# One command for all that is missing. $1: Debian package names.
explain() {
    root=''; [ "$(id -u)" = 0 ] || root='sudo '
    if command -v apt-get >/dev/null 2>&1; then
        say "Get it with:  ${root}sh -c 'apt-get update && apt-get install -y $1'"
    else
        say "Get it with your package manager; on Debian and Ubuntu the packages are: $1"
    fi
}

uv=$(find_uv)
python=$(find_python)
missing=''
packages=''
lack() { missing="$missing
  - $1"; packages="$packages $2"; }

if [ -z "$python" ] && { [ -z "$uv" ] || ! "$uv" python find '>=3.11' >/dev/null 2>&1; }; then
    found=$(command -v python3 >/dev/null 2>&1 && python3 -V 2>&1 || echo 'no python3')
    offered=$(offered_python)
    if [ -n "$offered" ]; then
        lack "Python 3.11 or newer ($found is here)" "$offered $offered-venv"
    else
        lack "Python 3.11 or newer ($found is here), and this system's packages have none: 'python3 -m pip install --user uv && ~/.local/bin/uv python install 3.12' gets one" "python3 python3-venv"
    fi
elif [ -z "$uv" ]; then
    short=$("$python" -c 'import sys; print("python%d.%d" % sys.version_info[:2])')
    "$python" -c 'import venv' >/dev/null 2>&1 || lack "the venv module of $python" "$short-venv"
    "$python" -c 'import ensurepip' >/dev/null 2>&1 || lack "pip for $python (its ensurepip module)" "$short-venv"
fi
command -v make >/dev/null 2>&1 || lack 'make' make
command -v "${CC:-cc}" >/dev/null 2>&1 || lack "a C compiler (${CC:-cc})" 'gcc libc6-dev'
if [ -n "$missing" ]; then
    say "Strobe cannot be set up here yet. Missing:$missing"
    explain "$(printf '%s\n' $packages | awk '!seen[$0]++' | paste -sd ' ')"
    exit 1
fi

if [ -n "$uv" ]; then
    [ -x "$venv/bin/python" ] || "$uv" venv --quiet --python "${python:->=3.11}" "$venv"
    say "Installing $lock with uv ..."
    VIRTUAL_ENV=$PWD/$venv "$uv" pip install --quiet --require-hashes -r "$lock"
    VIRTUAL_ENV=$PWD/$venv "$uv" pip install --quiet --no-deps --no-build-isolation -e .
else
    [ -x "$venv/bin/pip" ] || "$python" -m venv "$venv"
    say "Installing $lock with pip ..."
    "$venv/bin/python" -m pip install --quiet --disable-pip-version-check --no-input --require-hashes -r "$lock"
    "$venv/bin/python" -m pip install --quiet --disable-pip-version-check --no-input --no-deps --no-build-isolation -e .
fi
printf '%s\n' "$sum" > "$stamp"
[ "$kind" = run ] || printf '%s\n' "$(cat requirements.lock pyproject.toml setup.py | cksum)" > "$venv/.strobe-run"
