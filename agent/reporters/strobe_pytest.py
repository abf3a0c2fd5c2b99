"""Strobe's plugin for pytest 6 and later, and what starts pytest with it: `python strobe_pytest.py ARGS` is `python -m pytest -p strobe_pytest ARGS`.

Appends to the file of STROBE_TEST_EVENTS one JSON object a line, by `ev`: `run` (cwd, root) · `collected` (n) · `names` (of all tests, when none matches)
· `start` (id, file, line) · `phase` (id, when, outcome, ms, reason, message, frames, output, part) · `finish` (id) · `unread` (file, message, syntax) ·
`skipped` (file, reason) · `lost` (id, worker) · `gone` (worker, code, signal) · `error` (message) · `end` (code).
Each has `pid`; those of an xdist worker `worker`.
With xdist the workers tell of tests, their controller of workers. STROBE_TEST_ONLY, {"text", "exact"}, chooses tests by name.
"""

import json
import os
import runpy
import signal
import sys

if __name__ == "__main__":
    here = os.path.dirname(os.path.abspath(__file__))
    if getattr(sys.flags, "safe_path", False):
        sys.path.append(here)
    else:
        sys.path[0:1] = [os.getcwd()]
        sys.path.append(here)
    sys.argv[:] = ["pytest", "-p", "strobe_pytest", *sys.argv[1:]]
    try:
        runpy.run_module("pytest", run_name="__main__", alter_sys=True)
    except ImportError as missing:
        if (missing.name or "") != "pytest":
            raise
        sys.exit("%s: No module named pytest" % sys.executable)
    sys.exit(0)

import pytest

TEXT_MAX = 16000
FRAMES_MAX = 40
NAMES_MAX = 3000
FRAMEWORK = tuple(os.sep + folder + os.sep for folder in ("_pytest", "pluggy", "pytest_asyncio", "xdist"))

_file = None
_config = None
_frames = {}


def _tell(ev, **fields):
    global _file
    path = os.environ.get("STROBE_TEST_EVENTS")
    if path is None:
        return
    if _file is None:
        _file = os.open(path, os.O_WRONLY | os.O_APPEND | os.O_CREAT | os.O_CLOEXEC, 0o600)
    fields.update(ev=ev, pid=os.getpid())
    if hasattr(_config, "workerinput"):
        fields["worker"] = _config.workerinput["workerid"]
    # Half of a surrogate pair (a file's name that is no UTF-8) is no text: readers of JSON refuse the whole event.
    os.write(_file, json.dumps(fields, ensure_ascii=False).encode("utf-8", "replace") + b"\n")


def _base():
    return str(_config.invocation_params.dir)


def _name(nodeid):
    """A test's id with its file as seen from where pytest was started; its own ids count from the root folder."""
    file, parted, rest = nodeid.partition("::")
    return _place(file) + parted + rest


def _place(file):
    if not file:
        return file
    path = os.path.join(str(_config.rootdir) if not hasattr(_config, "rootpath") else str(_config.rootpath), file)
    return os.path.relpath(path, _base()).replace(os.sep, "/")


def _directs():
    """Whether this process only sends tests to the workers of xdist."""
    return _config.pluginmanager.hasplugin("dsession")


def pytest_configure(config):
    global _config
    _config = config
    if not hasattr(config, "workerinput"):
        _tell("run", cwd=_base(), root=str(config.rootdir) if not hasattr(config, "rootpath") else str(config.rootpath))


@pytest.hookimpl(trylast=True)
def pytest_collection_modifyitems(config, items):
    only = os.environ.get("STROBE_TEST_ONLY")
    if only is None:
        return
    asked = json.loads(only)
    names = [_name(item.nodeid) for item in items]
    if asked["exact"]:
        chosen = [name == asked["text"] for name in names]
    else:
        chosen = [asked["text"] in name for name in names]
        if not any(chosen):
            chosen = [asked["text"].lower() in name.lower() for name in names]
    if not any(chosen):
        _tell("names", names=names[:NAMES_MAX])
    config.hook.pytest_deselected(items=[item for item, kept in zip(items, chosen) if not kept])
    items[:] = [item for item, kept in zip(items, chosen) if kept]


def pytest_collection_finish(session):
    if not _directs():
        _tell("collected", n=len(session.items))


def pytest_collectreport(report):
    if _directs():
        return
    if report.failed:
        text = str(report.longrepr)
        _tell("unread", file=_name(report.nodeid), message=text[-TEXT_MAX:], frames=_frames.pop(report.nodeid, []))
    elif report.skipped:
        _tell("skipped", file=_name(report.nodeid), reason=_reason(report))


def _reason(report):
    if isinstance(report.longrepr, tuple):
        return str(report.longrepr[2])[:TEXT_MAX].replace("Skipped: ", "", 1)
    return str(report.longrepr)[:TEXT_MAX]


def _traceback(excinfo):
    found = []
    for entry in excinfo.traceback:
        path = str(entry.path)
        try:
            hidden = entry.ishidden(excinfo)
        except TypeError:  # before pytest 7.3
            hidden = entry.ishidden()
        if not hidden and not any(part in path for part in FRAMEWORK):
            found.append([path, entry.lineno + 1, entry.name])
    return found[-FRAMES_MAX:]


@pytest.hookimpl(hookwrapper=True)
def pytest_make_collect_report(collector):
    outcome = yield
    report = outcome.get_result()
    call = getattr(report, "call", None)
    if report.failed and call is not None and call.excinfo is not None:
        _frames[report.nodeid] = _traceback(call.excinfo)


@pytest.hookimpl(hookwrapper=True)
def pytest_runtest_makereport(item, call):
    yield
    if call.excinfo is not None:
        _frames[item.nodeid] = (_traceback(call.excinfo), call.excinfo.exconly(tryshort=True))


def pytest_runtest_logstart(nodeid, location):
    if not _directs():
        _tell("start", id=_name(nodeid), file=_place(location[0]), line=None if location[1] is None else location[1] + 1)


def pytest_runtest_logreport(report):
    if _directs():
        if report.when == "???":
            node = getattr(report, "node", None)
            _tell("lost", id=_name(report.nodeid), worker=node.gateway.id if node is not None else None)
        return
    fields = {"when": report.when, "outcome": report.outcome, "ms": report.duration * 1000}
    if hasattr(report, "wasxfail"):
        fields["expected"] = str(report.wasxfail)
    context = getattr(report, "context", None)
    if context is not None and hasattr(context, "kwargs"):  # a subtest
        fields["part"] = " ".join([*([context.msg] if context.msg else []), *("%s=%s" % pair for pair in context.kwargs.items())])[:TEXT_MAX]
    if report.skipped:
        fields["reason"] = _reason(report)
    elif report.failed:
        frames, message = _frames.get(report.nodeid, ([], str(report.longrepr)))
        fields.update(message=message[:TEXT_MAX], frames=frames)
        fields["output"] = "".join(text for _, text in report.sections)[:TEXT_MAX] or None
    _tell("phase", id=_name(report.nodeid), **fields)


def pytest_runtest_logfinish(nodeid):
    _frames.clear()
    if not _directs():
        _tell("finish", id=_name(nodeid))


@pytest.hookimpl(optionalhook=True)
def pytest_testnodedown(node, error):
    if error is not None:
        process = getattr(getattr(node.gateway, "_io", None), "popen", None)
        code = process.wait() if process is not None else None
        died = code is not None and code < 0
        _tell("gone", worker=node.gateway.id, code=None if died else code, signal=signal.Signals(-code).name if died else None)


def pytest_internalerror(excrepr):
    _tell("error", message=str(excrepr)[-TEXT_MAX:])


@pytest.hookimpl(trylast=True)
def pytest_sessionfinish(session, exitstatus):
    if not hasattr(session.config, "workerinput"):
        _tell("end", code=int(exitstatus))
