// Hands batches of hooks to prepare.c, and its answer back as one block of bytes.

import { PREPARE_C } from "./csource.js";
import { Recorder } from "./recorder.js";

const ITEM_BYTES = 104;
const THUNK_MAX = 128;
const SLAB_BYTES = 16;
const SLABS_MAX = 256;
const USED = ["strobe_slab", "strobe_hook_new", "strobe_plan_needs_xmm", "strobe_enter_gpr", "strobe_enter_xmm"];

export interface Prepared {
    slabs: number;
    slabsOffset: number; // of the slab table in the block; the items are at its start
    codeOffset: number;
}

export class Preparer {
    private readonly module: CModule;
    private readonly run: NativeFunction<number, [NativePointer, number, NativePointer, NativePointer, NativePointer, number, NativePointer, number]>;

    // `recorder`: the one in this process. Null: hooks and slabs are given with each batch, for another process.
    constructor(recorder: Recorder | null) {
        const never = Module.getGlobalExportByName("abort");
        const symbols = Object.fromEntries(USED.map(name => [name, recorder === null ? never : recorder.export(name)]));
        this.module = new CModule(PREPARE_C, symbols, { toolchain: "internal" });
        this.run = new NativeFunction(this.module.strobe_prepare, "int", ["pointer", "uint", "pointer", "pointer", "pointer", "uint", "pointer", "uint"]);
    }

    // `data` is `count` items in address order, their capture plans, and at its end `given` slabs (actors/spawner/items.py).
    prepare(count: number, given: number, data: ArrayBuffer): [Prepared, ArrayBuffer] {
        const slabsOffset = (data.byteLength + 7) & ~7;
        const codeOffset = slabsOffset + SLABS_MAX * SLAB_BYTES;
        const block = Memory.alloc(codeOffset + count * THUNK_MAX);
        block.writeByteArray(data);
        const own = given === 0 ? NULL : block.add(data.byteLength - given * SLAB_BYTES);
        const slabs = this.run(block, count, block.add(count * ITEM_BYTES), block.add(codeOffset), block.add(slabsOffset), SLABS_MAX, own, given);
        if (slabs < 0)
            throw new Error("capstone cannot be used in this process");
        let codeBytes = 0;
        for (let i = 0; i !== slabs; i++) {
            const slab = block.add(slabsOffset + i * SLAB_BYTES);
            codeBytes = slab.add(8).readU32() + slab.add(12).readU32();
        }
        return [{ slabs, slabsOffset, codeOffset }, block.readByteArray(codeOffset + codeBytes)!];
    }

    dispose(): void {
        this.module.dispose();
    }
}

// In the target, for the length of a visit.
export function prepare(recorder: Recorder, count: number, data: ArrayBuffer): [Prepared, ArrayBuffer] {
    const preparer = new Preparer(recorder);
    try {
        return preparer.prepare(count, 0, data);
    } finally {
        preparer.dispose();
    }
}
