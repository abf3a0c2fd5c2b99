// Tells Strobe what `bun test` (1.1 and later) does: one JSON line an event, appended to the file that STROBE_TEST_EVENTS names.
// Preloaded: it stands between test files and bun:test, and tells of each test as it begins and ends. What counts in the end is bun's own report.
import * as bunTest from 'bun:test'
import { appendFileSync } from 'node:fs'

const file = process.env.STROBE_TEST_EVENTS
// Half of a surrogate pair is no text: readers of JSON refuse the whole event. What a failure says may be as large as what it compares.
const TEXT_MAX = 65536
const asText = (_key: string, value: unknown) =>
  typeof value === 'string' ? value.slice(0, TEXT_MAX).replace(/[\ud800-\udbff](?![\udc00-\udfff])|(?<![\ud800-\udbff])[\udc00-\udfff]/g, '\ufffd') : value
const tell = (event: object) => {
  if (!file) return
  try {
    appendFileSync(file, JSON.stringify(event, asText) + '\n')
  } catch {} // the run's folder is gone: nobody listens any more
}

type Any = any
const around: string[] = [] // names of the suites that are being declared
const times = new Map<string, number>()

const shown = (value: unknown) => {
  try {
    return typeof value === 'string' ? value : JSON.stringify(value) ?? String(value)
  } catch {
    return String(value)
  }
}

// As bun writes a row's values into a name.
const formatted = (name: unknown, row: unknown[], index: number) => {
  let next = 0
  const first = row[0] as Any
  return String(name)
    .replace(/\$([A-Za-z_$][\w$.]*)/g, (all, path: string) => {
      const value = path.split('.').reduce((one: Any, key) => one?.[key], first)
      return value === undefined ? all : shown(value)
    })
    .replace(/%([sdifjop#%])/g, (all, kind: string) => {
      if (kind === '%') return '%'
      if (kind === '#') return String(index)
      if (next >= row.length) return all
      const value = row[next++]
      return kind === 'd' || kind === 'i' || kind === 'f' ? String(Number(value)) : kind === 'j' || kind === 'o' || kind === 'p' ? shown(value) : String(value)
    })
}

const errorOf = (error: Any) => ({
  message: error instanceof Error ? (['Error', 'AssertionError'].includes(error.name) ? error.message : `${error.name}: ${error.message}`) : String(error),
  stack: error?.stack,
})

// The test's function, told of. Its number of parameters is kept: by it bun knows whether it takes a `done`.
const told = (name: string, body: Any, row?: number) => {
  const path = [...around, name]
  const key = `${Bun.main}\0${path.join(' > ')}`
  times.set(key, (times.get(key) ?? 0) + 1)
  const id = `${key}\0${times.get(key)}`
  if (typeof body !== 'function') return body
  const end = (error?: { thrown: unknown }) => tell({ ev: 'left', id, status: error ? 'failed' : 'passed', failures: error ? [errorOf(error.thrown)] : [] })
  const wrapped = function (this: unknown, ...given: unknown[]) {
    tell({ ev: 'start', id, path, file: Bun.main, pid: process.pid })
    let returned = false
    try {
      const result = body.apply(this, given)
      returned = true
      if (result && typeof result.then === 'function')
        result.then(
          () => end(),
          (error: unknown) => end({ thrown: error }),
        )
      else if (body.length === 0 || row !== undefined) end()
      return result
    } finally {
      if (!returned) end({ thrown: undefined }) // not caught and thrown again: bun would show that place as the error's
    }
  }
  Object.defineProperty(wrapped, 'length', { value: body.length })
  return wrapped
}

const nameOf = (name: unknown) => (typeof name === 'function' ? name.name : String(name))

const asked = (given: unknown[], suite: boolean, rows?: unknown[]) => {
  const at = given.findIndex((one, index) => index > 0 && typeof one === 'function')
  if (at < 0) {
    if (!suite) told(nameOf(given[0]), undefined)
    return given
  }
  const body = given[at] as Any
  const changed = [...given]
  if (rows) {
    // One body for all rows: the n-th time it is called it is for the n-th row that runs.
    const each = rows.map((row, index) => {
      const values = Array.isArray(row) ? row : [row]
      const name = formatted(given[0], values, index)
      return { values, name, body: suite ? undefined : told(name, body, index) }
    })
    let next = 0
    const one = function (this: unknown, ...values: unknown[]) {
      const found = each.findIndex((entry, index) => index >= next && entry.values.every((value, place) => Object.is(value, values[place])))
      const index = found < 0 ? next : found
      next = index + 1
      const entry = each[index]
      if (!suite) return (entry?.body ?? body).apply(this, values)
      return within(entry?.name ?? nameOf(given[0]), () => body.apply(this, values))
    }
    Object.defineProperty(one, 'length', { value: body.length })
    changed[at] = one
  } else if (suite) {
    changed[at] = function (this: unknown, ...values: unknown[]) {
      return within(nameOf(given[0]), () => body.apply(this, values))
    }
  } else changed[at] = told(nameOf(given[0]), body)
  return changed
}

const within = (name: string, declare: () => unknown) => {
  around.push(name)
  try {
    return declare()
  } finally {
    around.pop()
  }
}

// bun takes a test's line from the caller's frame: the last call is a tail call, which leaves none of ours.
const wrap = (original: Any, suite: boolean, rows?: unknown[]): Any =>
  new Proxy(original, {
    apply(target, _self, given) {
      const changed = asked(given, suite, rows)
      return Reflect.apply(target, undefined, changed)
    },
    get(target, property) {
      const value = Reflect.get(target, property, target)
      if (typeof value !== 'function' || typeof property !== 'string' || property === 'prototype') return value
      if (property === 'each') return (table: unknown[]) => wrap(value.call(target, table), suite, [...table])
      if (property === 'if' || property === 'skipIf' || property === 'todoIf' || property === 'failingIf' || property === 'concurrentIf' || property === 'serialIf')
        return (condition: unknown) => wrap(value.call(target, condition), suite)
      if (['skip', 'only', 'todo', 'failing', 'concurrent', 'serial'].includes(property)) return wrap(value, suite)
      return value.bind(target)
    },
  })

if (file) {
  try {
    const original = { ...bunTest } as Any
    const replaced = { ...original }
    for (const name of ['test', 'it', 'xtest', 'xit']) if (original[name]) replaced[name] = wrap(original[name], false)
    for (const name of ['describe', 'xdescribe']) if (original[name]) replaced[name] = wrap(original[name], true)
    if (original.default) replaced.default = replaced
    original.mock.module('bun:test', () => replaced)
    tell({ ev: 'run', pid: process.pid, cwd: process.cwd() })
  } catch (error) {
    tell({ ev: 'note', message: `no live tests from bun: ${error}` })
  }
}
