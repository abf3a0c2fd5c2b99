// Recording without the recorder: Frida's Interceptor, with callbacks in C (fallback.c). The agent then stays for the target's life.

import * as layout from "../layout.gen.js";
import { FALLBACK_C } from "./csource.js";

const ITEM_BYTES = 104; // of items as for prepare.ts: address at 0, id at 12, plan offset at 20, plan bytes at 24
const STATE_BYTES = 64 + 1024 * (40 + 512 * 16 + layout.PAYLOAD_BYTES_MAX + 64); // struct State
const UNWINDER = "_Unwind_RaiseException";

const O_RDWR_CLOEXEC = 0o2000002;
const PROT_READ_WRITE = 3;
const MAP_SHARED = 1;
const MAP_PRIVATE_ANONYMOUS_NORESERVE = 0x4022;

export interface Started {
    status: number; // 0, or -errno of opening the pool
    exits: boolean; // whether returns are recorded as well
}

interface Running {
    module: CModule;
    exits: boolean;
    hooks: NativePointer[];
}

let running: Running | null = null;

// The layout's numbers as C definitions: LANE_CHUNK_SLOTS, LANE_KIND_ENTER, LANE_POOL_recording …
function definitions(): string {
    const lines: string[] = [];
    for (const [name, value] of Object.entries(layout)) {
        if (typeof value === "number")
            lines.push(`#define LANE_${name} ${value}`);
    }
    const tables = { KIND: layout.Kind, ENTRY_FLAG: layout.EntryFlag, HOOK_FLAG: layout.HookFlag, PLAN_OP: layout.PlanOp, STRING_STATE: layout.StringState };
    for (const [prefix, values] of Object.entries(tables))
        lines.push(...Object.entries(values).map(([name, value]) => `#define LANE_${prefix}_${name} ${value}`));
    for (const [prefix, fields] of Object.entries({ POOL: layout.POOL, HOOK: layout.HOOK, CHUNK: layout.CHUNK }))
        lines.push(...Object.entries(fields).map(([name, field]) => `#define LANE_${prefix}_${name} ${field.offset}`));
    return lines.join("\n") + "\n";
}

function mapMemory(bytes: number, protection: number, flags: number, file: number): NativePointer {
    const mmap = new NativeFunction(Module.getGlobalExportByName("mmap"), "pointer", ["pointer", "size_t", "int", "int", "int", "int64"]);
    return mmap(NULL, bytes, protection, flags, file, 0);
}

function mapPool(path: string): NativePointer | number {
    const open = new SystemFunction(Module.getGlobalExportByName("open"), "int", ["pointer", "int"]);
    const close = new NativeFunction(Module.getGlobalExportByName("close"), "int", ["int"]);
    const opened = open(Memory.allocUtf8String(path), O_RDWR_CLOEXEC) as UnixSystemFunctionResult<number>;
    if (opened.value < 0)
        return -opened.errno;
    const header = mapMemory(layout.HEADER_BYTES, PROT_READ_WRITE, MAP_SHARED, opened.value);
    const good = header.readU64().equals(uint64("0x" + layout.POOL_MAGIC.toString(16))) && header.add(layout.POOL.version.offset).readU32() === layout.LAYOUT_VERSION;
    const pool = good ? mapMemory(header.add(layout.POOL.pool_bytes.offset).readU64().toNumber(), PROT_READ_WRITE, MAP_SHARED, opened.value) : NULL;
    close(opened.value);
    return good ? pool : -22;
}

// A function with an onLeave cannot be unwound through: where there is an unwinder, only entries are recorded.
export function start(poolPath: string): Started {
    if (running !== null)
        return { status: 0, exits: running.exits };
    const pool = mapPool(poolPath);
    if (typeof pool === "number")
        return { status: pool, exits: false };
    const state = mapMemory(STATE_BYTES, PROT_READ_WRITE, MAP_PRIVATE_ANONYMOUS_NORESERVE, -1);
    state.writePointer(pool);
    state.add(8).writeU32(pool.add(layout.POOL.clock.offset).readU32() === layout.Clock.TSC ? 1 : 0);
    const module = new CModule(definitions() + FALLBACK_C, { state, syscall: Module.getGlobalExportByName("syscall") }, { toolchain: "internal" });
    const exits = Process.enumerateModules().every(module => module.path.startsWith("/memfd:") || module.findExportByName(UNWINDER) === null);
    running = { module, exits, hooks: [] };
    return { status: 0, exits };
}

const OVERWRITTEN_MAX = 16; // bytes that Interceptor may replace

// Frida moves a call out of the first bytes as it is: what it calls then returns into Frida's memory, which no unwinder knows.
function callsAtOnce(address: NativePointer): boolean {
    let at = address;
    while (at.sub(address).toInt32() < OVERWRITTEN_MAX) {
        const instruction = Instruction.parse(at);
        if (instruction.mnemonic === "call")
            return true;
        if (instruction.mnemonic === "ret" || instruction.mnemonic === "jmp")
            return false;
        at = instruction.next;
    }
    return false;
}

// Installs hooks; for each that could not be: its id and why.
export function attach(count: number, data: ArrayBuffer): [number, string][] {
    const { module, exits, hooks } = running!;
    const view = new DataView(data);
    const refused: [number, string][] = [];
    const callbacks = exits ? (module as unknown as NativeInvocationListenerCallbacks) : (module.onCall as unknown as NativeInvocationListenerCallbacks);
    for (let i = 0; i !== count; i++) {
        const at = i * ITEM_BYTES;
        const id = view.getUint32(at + 12, true);
        const plan = count * ITEM_BYTES + view.getUint32(at + 20, true);
        const planBytes = view.getUint32(at + 24, true);
        const hook = Memory.alloc(8 + planBytes);
        hook.writeU32(id).add(4).writeU32(planBytes / layout.PLAN_OP_BYTES);
        hook.add(8).writeByteArray(data.slice(plan, plan + planBytes));
        const address = ptr("0x" + view.getBigUint64(at, true).toString(16));
        try {
            if (!exits && callsAtOnce(address))
                throw new Error("a call in its first bytes could not be unwound through");
            Interceptor.attach(address, callbacks, hook);
            hooks.push(hook);
        } catch (error) {
            refused.push([id, (error as Error).message]);
        }
    }
    Interceptor.flush();
    return refused;
}
