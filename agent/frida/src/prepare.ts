// Hands a batch of hooks to prepare.c, in this process, and its answer back as one block of bytes.

import { PREPARE_C } from "./csource.js";
import { Recorder } from "./recorder.js";

const ITEM_BYTES = 88;
const THUNK_MAX = 128;
const SLAB_BYTES = 16;
const SLABS_MAX = 256;
const USED = ["strobe_internals", "strobe_slab", "strobe_hook_new", "strobe_plan_needs_xmm", "strobe_enter_gpr", "strobe_enter_xmm"];

export interface Prepared {
    slabs: number;
    slabsOffset: number; // of the slab table in the block; the items are at its start
    codeOffset: number;
}

// `data` is `count` items in address order, then their capture plans (actors/spawner/items.py).
export function prepare(recorder: Recorder, count: number, data: ArrayBuffer): [Prepared, ArrayBuffer] {
    const slabsOffset = (data.byteLength + 7) & ~7;
    const codeOffset = slabsOffset + SLABS_MAX * SLAB_BYTES;
    const block = Memory.alloc(codeOffset + count * THUNK_MAX);
    block.writeByteArray(data);
    const symbols = Object.fromEntries(USED.map(name => [name, recorder.export(name)]));
    const module = new CModule(PREPARE_C, symbols, { toolchain: "internal" });
    try {
        const run = new NativeFunction(module.strobe_prepare, "int", ["pointer", "uint", "pointer", "pointer", "pointer", "uint"]);
        const slabs = run(block, count, block.add(count * ITEM_BYTES), block.add(codeOffset), block.add(slabsOffset), SLABS_MAX);
        if (slabs < 0)
            throw new Error("capstone cannot be used in this process");
        let codeBytes = 0;
        for (let i = 0; i !== slabs; i++) {
            const slab = block.add(slabsOffset + i * SLAB_BYTES);
            codeBytes = slab.add(8).readU32() + slab.add(12).readU32();
        }
        return [{ slabs, slabsOffset, codeOffset }, block.readByteArray(codeOffset + codeBytes)!];
    } finally {
        module.dispose();
    }
}
