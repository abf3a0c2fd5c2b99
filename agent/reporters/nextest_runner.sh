#!/bin/sh
# What cargo-nextest runs a test program by: says which test begins, and in which process, then is that process.
# Appends {"ev": "start", "id", "binary", "pid"} to the file of STROBE_TEST_EVENTS.
if [ "$2" = --exact ] && [ -n "$STROBE_TEST_EVENTS" ]; then
    case "$3" in
        *[\"\\]*) ;;
        *) printf '{"ev":"start","id":"%s","binary":"%s","pid":%d}\n' "$3" "$NEXTEST_BINARY_ID" $$ >> "$STROBE_TEST_EVENTS" ;;
    esac
fi
exec "$@"
