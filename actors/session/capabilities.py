"""What can be done with a target, told before it runs (SPEC §4, debug_launch `capabilities`)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final, Literal

from strobe.model.session import Capabilities

Runtime = Literal["native", "python", "node", "deno", "bun", "go", "script", "unknown"]
RECORDER_NOTES = {
    "native": (),
    "fallback": (
        "Tracing runs over Frida's Interceptor because the recorder could not be loaded: about ten times dearer per call, and Frida stays in the process.",
    ),
    "none": (),
}


_ATTACHED: Final = (
    "Attached: of its output, what it writes from now on by libc's write, writev and pwrite is copied; what bypasses them is not seen.",
    "Attached: it is no child of Strobe's, so its exit status can be unknown where its parent takes it first and the kernel (before 6.15) tells no one else.",
)


CORE: Final = Capabilities(
    runtime="native",
    runtime_detail="core dump",
    function_tracing="none",
    breakpoints="none",
    stepping="none",
    output_capture="none",
    limitations=["A core dump: its crash, threads and memory can be looked at; nothing in it runs."],
)


@dataclass(frozen=True)
class Finding:
    """What preflight and injection found out. `recorder`: native, fallback or none."""

    runtime: Runtime
    detail: str | None
    recorder: str
    refusal: str | None  # why nothing is injected
    has_symbols: bool
    pty: bool
    sees_loading: bool = True
    attached: bool = False


def capabilities(finding: Finding) -> Capabilities:
    limitations = list(RECORDER_NOTES[finding.recorder])
    if finding.refusal:
        kept = "Its end is seen; output is not, and" if finding.attached else "Output, exit status and crash signal are captured;"
        limitations.append(f"Direct mode: {finding.refusal}. {kept} functions can't be traced.")
    elif not finding.has_symbols:
        limitations.append("The program is stripped: only functions in its dynamic symbol table can be traced. Build it with -g, or give symbolsPath.")
    if finding.recorder == "native" and not finding.sees_loading:
        limitations.append("Libraries that are loaded later are noticed only some 0.1 s later, so that their constructors and first calls are not traced.")
    if finding.attached:
        limitations += _ATTACHED if finding.recorder != "none" else _ATTACHED[1:]
    if finding.pty:
        limitations.append("On a pty stderr arrives merged into stdout.")
    if finding.runtime in ("python", "node", "deno", "bun", "script"):
        limitations.append("Functions of the interpreted program can't be traced yet; the interpreter's own native functions can.")
    tracing: Literal["full", "partial", "none"] = "none" if finding.recorder == "none" else "full" if finding.has_symbols else "partial"
    return Capabilities(
        runtime=finding.runtime,
        runtime_detail=finding.detail,
        function_tracing=tracing,
        breakpoints="none",
        stepping="none",
        output_capture="full" if not finding.attached else "none" if finding.recorder == "none" else "partial",
        limitations=limitations,
    )
