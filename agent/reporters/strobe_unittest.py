"""Strobe's runner for unittest: `python strobe_unittest.py ARGS` is `python -m unittest ARGS`, and appends to the file of STROBE_TEST_EVENTS.

One JSON object a line, by `ev`, as strobe_pytest.py: `run` (cwd) · `collected` (n) · `names` · `start` (id, file, line) · `phase` (id, when, outcome, ms,
reason, message, frames, part) · `finish` (id) · `unread` (file, message, frames) · `end` (code). STROBE_TEST_ONLY, {"text", "exact"}, chooses tests by name.
"""

import inspect
import json
import os
import sys
import time
import traceback
import unittest

TEXT_MAX = 16000
FRAMES_MAX = 40
NAMES_MAX = 3000
_file = None


def tell(ev, **fields):
    global _file
    path = os.environ.get("STROBE_TEST_EVENTS")
    if path is None:
        return
    if _file is None:
        _file = os.open(path, os.O_WRONLY | os.O_APPEND | os.O_CREAT | os.O_CLOEXEC, 0o600)
    fields.update(ev=ev, pid=os.getpid())
    # Half of a surrogate pair (a file's name that is no UTF-8) is no text: readers of JSON refuse the whole event.
    os.write(_file, json.dumps(fields, ensure_ascii=False).encode("utf-8", "replace") + b"\n")


def place(test):
    """File and line of a test's method."""
    method = getattr(test, getattr(test, "_testMethodName", ""), None)
    try:
        code = inspect.unwrap(method)
        return inspect.getsourcefile(code), inspect.getsourcelines(code)[1]
    except (TypeError, OSError, ValueError):
        return None, None


def frames_of(error):
    found = [[one.filename, one.lineno, one.name] for one in traceback.extract_tb(error[2])]
    ours = os.path.dirname(unittest.__file__) + os.sep
    return [one for one in found if not one[0].startswith(ours) and one[0] != __file__][-FRAMES_MAX:]


def message_of(error):
    text = "".join(traceback.format_exception_only(error[0], error[1])).strip()
    return text[len("AssertionError: ") :] if text.startswith("AssertionError: ") else text


class Result(unittest.TextTestResult):
    begun = None

    def startTest(self, test):
        super().startTest(test)
        file, line = place(test)
        self.begun = time.perf_counter()
        tell("start", id=test.id(), file=file, line=line)

    def stopTest(self, test):
        super().stopTest(test)
        tell("finish", id=test.id())

    def phase(self, test, outcome, **fields):
        # setUpClass and its like fail as a test of their own, that never began.
        alone = not isinstance(test, unittest.TestCase)
        if alone:
            tell("start", id=str(test), file=None, line=None)
        ms = (time.perf_counter() - self.begun) * 1000 if self.begun is not None and not alone else 0
        tell("phase", id=str(test) if alone else test.id(), when="call", outcome=outcome, ms=ms, **fields)
        if alone:
            tell("finish", id=str(test))

    def failed(self, test, error, part=None):
        if type(test).__name__ == "_FailedTest":
            said = getattr(test, "_exception", error[1])
            cause = said.__cause__ or said
            text = str(said).strip()
            tell("unread", file=None, message=text[-TEXT_MAX:], frames=frames_of((type(cause), cause, cause.__traceback__)))
            return
        fields = {"part": part} if part is not None else {}
        self.phase(test, "failed", message=message_of(error)[:TEXT_MAX], frames=frames_of(error), **fields)

    def addSuccess(self, test):
        super().addSuccess(test)
        self.phase(test, "passed")

    def addFailure(self, test, err):
        super().addFailure(test, err)
        self.failed(test, err)

    def addError(self, test, err):
        super().addError(test, err)
        self.failed(test, err)

    def addSkip(self, test, reason):
        super().addSkip(test, reason)
        self.phase(test, "skipped", reason=str(reason)[:TEXT_MAX])

    def addExpectedFailure(self, test, err):
        super().addExpectedFailure(test, err)
        self.phase(test, "skipped", reason="", expected="")

    def addUnexpectedSuccess(self, test):
        super().addUnexpectedSuccess(test)
        self.phase(test, "failed", message="passed, though it is marked as an expected failure", frames=[])

    def addSubTest(self, test, subtest, err):
        super().addSubTest(test, subtest, err)
        if err is not None:
            self.failed(test, err, subtest._subDescription())


def flat(suite):
    for one in suite:
        if isinstance(one, unittest.TestSuite):
            yield from flat(one)
        else:
            yield one


def chosen(suite):
    """The suite, or of it what STROBE_TEST_ONLY asks for. Modules and classes set up once as before: the order stays."""
    tests = list(flat(suite))
    only = os.environ.get("STROBE_TEST_ONLY")
    if only is not None:
        asked = json.loads(only)
        # What could not be read may hide what was asked for.
        names = [one.id() for one in tests]
        if asked["exact"]:
            kept = [name == asked["text"] for name in names]
        else:
            kept = [asked["text"] in name for name in names]
            if not any(kept):
                kept = [asked["text"].lower() in name.lower() for name in names]
        if not any(kept):
            tell("names", names=[name for name, one in zip(names, tests) if type(one).__name__ != "_FailedTest"][:NAMES_MAX])
            kept = [type(one).__name__ == "_FailedTest" for one in tests]
        tests = [one for one, wanted in zip(tests, kept) if wanted]
        suite = unittest.TestSuite(tests)
    tell("collected", n=sum(type(one).__name__ != "_FailedTest" for one in tests))
    return suite


class Runner(unittest.TextTestRunner):
    resultclass = Result

    def run(self, test):
        return super().run(chosen(test))


if __name__ == "__main__":
    here = os.path.dirname(os.path.abspath(__file__))
    if sys.path and os.path.abspath(sys.path[0]) == here:
        sys.path[0] = os.getcwd()
    tell("run", cwd=os.getcwd())
    sys.argv[0] = "python -m unittest"
    program = unittest.main(module=None, testRunner=Runner, exit=False)
    code = 0 if program.result.wasSuccessful() else 1
    tell("end", code=code)
    sys.exit(code)
