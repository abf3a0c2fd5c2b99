// Tells Strobe what `deno test` (2.4 and later) does: one JSON line an event, appended to the file that STROBE_TEST_EVENTS names.
// Preloaded: it tells of each test as it begins and ends. What counts in the end is deno's own report.
import vm from 'node:vm'

type Any = any
let out: Deno.FsFile | undefined
try {
  // Open before any test: a test may run with no permission at all.
  const file = Deno.env.get('STROBE_TEST_EVENTS')
  if (file) out = Deno.openSync(file, { append: true, create: true, write: true })
} catch {} // not permitted: deno's report has to do

const encoder = new TextEncoder()
// Half of a surrogate pair is no text: readers of JSON refuse the whole event. What a failure says may be as large as what it compares.
const TEXT_MAX = 65536
const asText = (_key: string, value: unknown) =>
  typeof value === 'string' ? value.slice(0, TEXT_MAX).replace(/[\ud800-\udbff](?![\udc00-\udfff])|(?<![\ud800-\udbff])[\udc00-\udfff]/g, '\ufffd') : value
const tell = (event: object) => {
  try {
    out?.writeSync(encoder.encode(JSON.stringify(event, asText) + '\n'))
  } catch {} // the run's folder is gone: nobody listens any more
}

const times = new Map<string, number>()
const told = (name: string, body: Any) => {
  if (typeof body !== 'function') return body
  const place = new Error().stack?.split('\n').map((line) => line.match(/(file:\/\/.*?):(\d+):\d+\)?$/)).find((one) => one && one[1] !== import.meta.url)
  const file = place ? decodeURIComponent(new URL(place[1]).pathname) : undefined
  const key = `${file}\0${name}`
  times.set(key, (times.get(key) ?? 0) + 1)
  const id = `${key}\0${times.get(key)}`
  const line = place ? Number(place[2]) : undefined
  return async function (this: unknown, ...given: unknown[]) {
    tell({ ev: 'start', id, path: [name], file, line, pid: Deno.pid })
    let passed = false
    try {
      const result = await body.apply(this, given)
      passed = true
      return result
    } finally {
      tell({ ev: 'left', id, status: passed ? 'passed' : 'failed' })
    }
  }
}

const changed = (given: Any[]) => {
  const [first, second, third] = given
  if (typeof first === 'function') return [{ name: first.name, fn: told(first.name, first) }]
  if (typeof first === 'string') {
    if (typeof second === 'function') return [first, told(first, second)]
    return [first, second, told(first, third ?? second?.fn)].filter((one) => one !== undefined)
  }
  if (first && typeof first === 'object') {
    if (typeof second === 'function') return [first, told(first.name ?? second.name, second)]
    return [{ ...first, fn: told(first.name ?? first.fn?.name, first.fn) }]
  }
  return given
}

if (out) {
  // deno takes a test's place from the nearest frame that is not of its own scripts, whose names begin with `ext:`.
  const wrap = vm.runInThisContext(
    `((original, changed) => new Proxy(original, { apply(target, self, given) { return Reflect.apply(target, self, changed(given)) } }))`,
    { filename: 'ext:strobe/deno.js' },
  )
  const original = Deno.test as Any
  const replaced = wrap(original, changed)
  for (const name of ['only', 'ignore', 'skip']) {
    try {
      if (typeof original[name] === 'function') original[name] = wrap(original[name], changed)
    } catch {} // not to be replaced: those tests are in the report alone
  }
  ;(Deno as Any).test = replaced
  tell({ ev: 'run', pid: Deno.pid })
}
