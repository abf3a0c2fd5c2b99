// What runs inside a target for the length of a visit: loads the recorder, prepares thunks, leaves. It applies nothing: the session
// writes the bytes once this agent is gone. In a process of Strobe's own it prepares thunks for targets that have the recorder already. Only where the recorder cannot be loaded does it stay and hook by itself (fallback.ts).
// No JavaScript runs per traced call.

import { Started, attach, start } from "./fallback.js";
import { Prepared, Preparer, prepare } from "./prepare.js";
import { Internal, Recorder } from "./recorder.js";

interface Loaded {
    status: number; // of strobe_init: 0, or -errno
    internals: Internal[];
    arm: string; // address of strobe_arm
    remote: string; // of strobe_remote
}

let recorder: Recorder | null = null;
let apart: Preparer | null = null;

rpc.exports = {
    load(recorderPath: string, poolPath: string): Loaded {
        recorder = Recorder.load(recorderPath);
        const [arm, remote] = ["strobe_arm", "strobe_remote"].map(name => recorder!.export(name).toString());
        return { status: recorder.start(poolPath), internals: recorder.internals, arm, remote };
    },
    prepare(count: number, data: ArrayBuffer): [Prepared, ArrayBuffer] {
        return prepare(recorder!, count, data);
    },
    apart(count: number, given: number, data: ArrayBuffer): [Prepared, ArrayBuffer] {
        apart ??= new Preparer(null);
        return apart.prepare(count, given, data);
    },
    fallback(poolPath: string): Started {
        return start(poolPath);
    },
    attach(count: number, data: ArrayBuffer): [number, string][] {
        return attach(count, data);
    },
};
