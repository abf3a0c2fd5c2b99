#!/bin/sh
# strobe-ci for CI systems: sets Strobe up in this checkout where it is not yet, and runs a project's tests. Options come as STROBE_CI_* variables, so
# that no text of a workflow becomes part of a command: PROJECT FRAMEWORK LEVEL TEST COMMAND TIMEOUT REPEAT JUNIT EVIDENCE NO_TRACE (1).
# STROBE_CI_PYTHON: an interpreter that has Strobe; then nothing is set up.
set -eu
root=$(CDPATH='' cd -- "$(dirname -- "$0")/.." && pwd)
if [ -z "${STROBE_CI_PYTHON:-}" ]; then
    make -C "$root" --no-print-directory setup-run native >&2 || exit 3
    STROBE_CI_PYTHON=$root/.venv/bin/python
fi
python=$STROBE_CI_PYTHON
set -- "${STROBE_CI_PROJECT:-.}"
[ -z "${STROBE_CI_FRAMEWORK:-}" ] || set -- "$@" --framework "$STROBE_CI_FRAMEWORK"
[ -z "${STROBE_CI_LEVEL:-}" ] || set -- "$@" --level "$STROBE_CI_LEVEL"
[ -z "${STROBE_CI_TEST:-}" ] || set -- "$@" --test "$STROBE_CI_TEST"
[ -z "${STROBE_CI_COMMAND:-}" ] || set -- "$@" --command "$STROBE_CI_COMMAND"
[ -z "${STROBE_CI_TIMEOUT:-}" ] || set -- "$@" --timeout "$STROBE_CI_TIMEOUT"
[ -z "${STROBE_CI_REPEAT:-}" ] || set -- "$@" --repeat "$STROBE_CI_REPEAT"
[ -z "${STROBE_CI_JUNIT:-}" ] || set -- "$@" --junit "$STROBE_CI_JUNIT"
[ -z "${STROBE_CI_EVIDENCE:-}" ] || set -- "$@" --evidence "$STROBE_CI_EVIDENCE"
[ "${STROBE_CI_NO_TRACE:-}" != 1 ] || set -- "$@" --no-trace
unset STROBE_CI_PYTHON
exec "$python" -P -m strobe.ci "$@"
