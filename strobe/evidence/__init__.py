"""Evidence bundles: what a test run left, in one zip file that another machine can check and read.

    manifest.json        format, versions, commit, command, names of environment variables, build-ids; every other member with its bytes and SHA-256
    results.json         the run's result and every test
    junit.xml            the same for CI systems
    redaction.json       how often something that looks like a secret was taken out, by member
    output/<name>.txt    the end of what was printed
    traces/<id>.parquet  a traced run's events (traces.py has the columns)
    sources/<path>       project files that failures and traces name, as they were
    flakes.json          what repeated runs had in common and where they part
"""
