// Tells Strobe what node:test (Node 18 to 26) does: one JSON line an event, appended to the file that STROBE_TEST_EVENTS names.
// A reporter of `node --test` that writes nothing to its destination. By --import it is also in the process of each file, and tells there of a test's start:
// what that process sends to its parent is lost where a test never gives the event loop back, or ends it.
import { appendFileSync } from 'node:fs'
import { basename, resolve } from 'node:path'
import { subscribe } from 'node:diagnostics_channel'

const events = process.env.STROBE_TEST_EVENTS
// Half of a surrogate pair is no text: readers of JSON refuse the whole event. What a failure says may be as large as what it compares.
const TEXT_MAX = 65536
const asText = (_key, value) =>
  typeof value === 'string' ? value.slice(0, TEXT_MAX).replace(/[\ud800-\udbff](?![\udc00-\udfff])|(?<![\ud800-\udbff])[\udc00-\udfff]/g, '\ufffd') : value
const tell = (event) => {
  if (!events) return
  try {
    appendFileSync(events, JSON.stringify(event, asText) + '\n')
  } catch {} // the run's folder is gone: nobody listens any more
}

const idOf = (file, name, count) => `${file}\0${name}\0${count}`
const inFile = /^child/.test(process.env.NODE_TEST_CONTEXT ?? '')
if (inFile && events) {
  const { beforeEach, afterEach } = await import('node:test')
  const file = resolve(process.argv[1] ?? '')
  const times = new Map()
  const ids = new WeakMap()
  beforeEach((context) => {
    const name = context.fullName ?? context.name
    times.set(name, (times.get(name) ?? 0) + 1)
    const id = idOf(file, name, times.get(name))
    ids.set(context, id)
    tell({ ev: 'start', id, path: name.split(' > '), file, pid: process.pid })
  })
  afterEach((context) => {
    if (ids.has(context)) tell({ ev: 'left', id: ids.get(context), status: context.error ? 'failed' : 'passed' })
  })
}

// Each file is a process of its own, whose script is the last argument.
if (!inFile) try {
  subscribe('child_process', ({ process: child }) => {
    child.once('spawn', () => {
      const script = child.spawnargs?.at(-1)
      if (script) tell({ ev: 'process', file: resolve(script), pid: child.pid })
    })
    child.once('exit', (code, signal) => tell({ ev: 'gone', pid: child.pid, code, signal, file: resolve(child.spawnargs?.at(-1) ?? '') }))
  })
} catch {} // a Node without the channel

const OWN = new Set(['subtestsFailed', 'cancelledByParent'])
const lasting = new Map() // a test's place in its file → ids of those with that place that run
const stacks = new Map() // file → names of the tests that lie around the next one
const done = new Map()
const counts = new Map() // file and full name → how often it came

const placeOf = (data) => `${data.file}\0${data.nesting}\0${data.name}\0${data.line}\0${data.column}`
const isFile = (data) => data.nesting === 0 && data.file !== undefined && resolve(data.name) === resolve(data.file)
const failureOf = (error) => {
  const cause = error?.cause ?? error
  if (cause === null || typeof cause !== 'object') return { message: String(cause) }
  const name = cause.name && !['Error', 'AssertionError'].includes(cause.name) ? `${cause.name}: ` : ''
  const message = String(cause.message ?? cause)
  return { message: message.startsWith(cause.name) ? message : name + message, stack: cause.stack ?? error.stack }
}

const start = (data, told) => {
  if (data.file && isFile(data)) return void tell({ ev: 'file', file: resolve(data.file) })
  if (!stacks.has(data.file)) stacks.set(data.file, [])
  const names = stacks.get(data.file)
  names.length = Math.min(names.length, data.nesting)
  const parent = names[data.nesting - 1]
  if (parent) tell({ ev: 'parent', id: parent.id })
  const path = [...names.map((each) => each.name), data.name]
  const full = `${data.file}\0${path.join(' > ')}`
  counts.set(full, (counts.get(full) ?? 0) + 1)
  const one = { id: idOf(data.file && resolve(data.file), path.join(' > '), counts.get(full)), name: data.name, path }
  names[data.nesting] = one
  const place = placeOf(data)
  lasting.set(place, [...(lasting.get(place) ?? []), one])
  if (told && data.type !== 'suite') tell({ ev: 'start', id: one.id, path: one.path, file: data.file && resolve(data.file), line: data.line })
  return one
}

const end = (data, passed) => {
  const details = data.details ?? {}
  const error = details.error
  if (data.file && isFile(data)) {
    const kind = error?.failureType
    // An error of a file of its own: it could not be loaded, or its process ended otherwise than by its tests.
    if (error && !OWN.has(kind)) tell({ ev: 'fileError', file: resolve(data.file), code: error.exitCode, signal: error.signal, ...failureOf(error), output: said.get(resolve(data.file)) })
    if (!error) passedFiles.set(data.file, details.duration_ms)
    return void tell({ ev: 'fileEnd', file: resolve(data.file) })
  }
  const place = placeOf(data)
  const [one, ...others] = lasting.get(place) ?? []
  lasting.set(place, others)
  const known = one ?? start(data, false)
  if (!one) lasting.set(place, [])
  done.set(place, (done.get(place) ?? 0) + 1)
  if (details.type === 'suite') {
    tell({ ev: 'parent', id: known.id })
    if (error && !OWN.has(error.failureType)) tell({ ev: 'error', kind: 'hook', path: [...known.path, 'hook'], file: resolve(data.file), line: data.line, ...failureOf(error) })
    return
  }
  const left = data.skip !== undefined && data.skip !== false
  const todo = data.todo !== undefined && data.todo !== false
  if (!left && !todo && error?.failureType === 'subtestsFailed') return void tell({ ev: 'parent', id: known.id })
  const word = left ? data.skip : data.todo
  tell({
    ev: 'end', id: known.id, path: known.path, file: data.file && resolve(data.file), line: data.line, status: left || todo ? 'skipped' : passed ? 'passed' : 'failed',
    todo, reason: typeof word === 'string' && word ? word : undefined, ms: details.duration_ms, failures: passed || left || todo ? [] : [failureOf(error)],
  })
}

const passedFiles = new Map()
const said = new Map() // file → the end of its stderr

export default async function* (source) {
  let dequeues = false
  tell({ ev: 'run', pid: process.pid, cwd: process.cwd() })
  for await (const { type, data } of source) {
    if (type === 'test:dequeue') {
      dequeues = true
      start(data, true)
    } else if (type === 'test:start' && !dequeues) start(data, true)
    else if (type === 'test:complete' && dequeues) end(data, data.details?.passed ?? data.details?.error === undefined)
    else if (type === 'test:pass' || type === 'test:fail') {
      const left = (done.get(placeOf(data)) ?? 0) > 0 // told as it ended, and again in the order of declaration
      if (left) done.set(placeOf(data), done.get(placeOf(data)) - 1)
      else if (!dequeues || !(data.file && isFile(data))) end(data, type === 'test:pass')
    } else if (type === 'test:stderr' && data.file) said.set(resolve(data.file), ((said.get(resolve(data.file)) ?? '') + data.message).slice(-4000))
  }
  // A script without tests is one itself.
  for (const [file, ms] of passedFiles)
    if (!stacks.has(file)) tell({ ev: 'end', id: resolve(file), path: [basename(file)], file: resolve(file), status: 'passed', ms })
  tell({ ev: 'done' })
}
