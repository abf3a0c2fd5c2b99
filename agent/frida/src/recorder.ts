// The recorder in this process (agent/native/recorder.h): loading it once, and what it exports.

export const INTERNAL_BYTES = 24; // struct strobe_internal

export interface Internal {
    symbol: string;
    everyModule: boolean;
    hook: string; // the address of the element, which its thunks push
    entry: string; // what they jump to
}

export class Recorder {
    readonly internals: Internal[];

    constructor(readonly module: Module) {
        const table = module.getExportByName("strobe_internals");
        const count = module.getExportByName("strobe_internals_count").readU32();
        this.internals = [];
        for (let i = 0; i !== count; i++) {
            const at = table.add(i * INTERNAL_BYTES);
            const [symbol, entry] = [at.readPointer().readUtf8String()!, at.add(8).readPointer().toString()];
            this.internals.push({ symbol, everyModule: at.add(16).readU32() !== 0, hook: at.toString(), entry });
        }
    }

    // The recorder that an earlier visit left here, or a fresh one. Throws where it cannot be mapped: a noexec folder, seccomp, no right to read it.
    static load(path: string): Recorder {
        loadUnwinder();
        const name = path.substring(path.lastIndexOf("/") + 1);
        return new Recorder(Process.findModuleByName(name) ?? Module.load(path));
    }

    // 0, or -errno.
    start(poolPath: string): number {
        const init = new NativeFunction(this.export("strobe_init"), "int", ["pointer"]);
        return init(Memory.allocUtf8String(poolPath));
    }

    export(name: string): NativePointer {
        return this.module.getExportByName(name);
    }
}

// glibc opens libgcc_s.so.1 by itself only when a thread exits, is cancelled or wants a backtrace, and walks the stack with it at once: it must be
// there to be hooked before that. Where the system has none, nobody can walk the stack with it either.
function loadUnwinder(): void {
    const name = "libgcc_s.so.1";
    if (Process.findModuleByName(name) !== null) return;
    try {
        Module.load(name);
    } catch (error) {
        console.debug(`${name}: ${error}`);
    }
}
