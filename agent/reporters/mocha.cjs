// Tells Strobe what mocha (8 to 12) does: one JSON line an event, appended to the file that STROBE_TEST_EVENTS names.
// Loaded by --require, in mocha's process and in its parallel workers: the project's own reporter stays as it is.
'use strict'
const fs = require('node:fs')
const path = require('node:path')

const file = process.env.STROBE_TEST_EVENTS
// Half of a surrogate pair is no text: readers of JSON refuse the whole event. What a failure says may be as large as what it compares.
const TEXT_MAX = 65536
const asText = (_key, value) =>
  typeof value === 'string' ? value.slice(0, TEXT_MAX).replace(/[\ud800-\udbff](?![\udc00-\udfff])|(?<![\ud800-\udbff])[\udc00-\udfff]/g, '\ufffd') : value
const tell = (event) => {
  if (!file) return
  try {
    fs.appendFileSync(file, JSON.stringify(event, asText) + '\n')
  } catch {} // the run's folder is gone: nobody listens any more
}

const pathOf = (one) => {
  if (typeof one.titlePath === 'function') return one.titlePath()
  return [one.fullTitle ? one.fullTitle() : one.title]
}
const isHook = (one) => one.type === 'hook'
const errorOf = (error) => {
  if (error === null || typeof error !== 'object') return { message: String(error) }
  const name = error.name && !['Error', 'AssertionError'].includes(error.name) ? `${error.name}: ` : ''
  const message = String(error.message ?? error)
  return { message: message.startsWith(error.name) ? message : name + message, stack: error.stack, diff: diffOf(error) }
}
const diffOf = (error) => {
  if (error.showDiff === false || !('expected' in error) || !('actual' in error) || /\n/.test(error.message ?? '')) return undefined
  const shown = (value) => {
    try {
      return typeof value === 'string' ? value : JSON.stringify(value, null, 2)?.slice(0, 1000)
    } catch {
      return String(value)
    }
  }
  const [expected, actual] = [shown(error.expected), shown(error.actual)]
  return expected === undefined || actual === undefined ? undefined : `expected: ${expected}\nactual: ${actual}`
}

const listen = (runner) => {
  const parallel = typeof runner.isParallelMode === 'function' && runner.isParallelMode()
  const worker = Boolean(process.send) && /worker\.c?js$/.test(process.argv[1] ?? '')
  const failedHooks = new Map()
  // A worker's tests have other ids in the main process: there they are told apart by name, and by how often it came.
  const times = new Map()
  const ids = new Map()
  const idOf = (test, again) => {
    if (!parallel && !worker) test = test.retriedTest?.() ?? test
    if (!parallel && !worker) return test.id ?? `${test.file}\0${pathOf(test).join('\0')}`
    const name = `${test.file}\0${pathOf(test).join('\0')}`
    if (again || ids.has(test)) return ids.get(test) ?? `${name}\0${times.get(name)}`
    times.set(name, (times.get(name) ?? 0) + (test.currentRetry?.() > 0 ? 0 : 1))
    const id = `${name}\0${times.get(name)}`
    ids.set(test, id)
    return id
  }
  const common = (test) => ({ id: idOf(test), path: pathOf(test), file: test.file })
  const end = (test, status, more) => tell({ ev: 'end', ...common(test), status, ms: test.duration, ...more })
  if (!worker)
    runner.once('start', () => {
      tell({ ev: 'run', pid: process.pid, cwd: process.cwd(), total: parallel ? undefined : runner.total })
      if (!parallel && !runner.total) {
        const names = []
        runner.suite.eachTest((test) => names.push(pathOf(test).join(' > ')))
        tell({ ev: 'names', names })
      }
    })
  if (!parallel) {
    runner.on('test', (test) => tell({ ev: 'start', ...common(test), pid: process.pid }))
    // A hook of a suite may hang or end the process as well as a test.
    runner.on('hook', (hook) => {
      if (/^"(before|after) all"/.test(hook.title)) tell({ ev: 'start', ...common(hook), pid: process.pid })
    })
    runner.on('hook end', (hook) => tell({ ev: 'parent', id: idOf(hook) }))
  }
  if (worker) {
    runner.on('test end', (test) => test.isPending() || tell({ ev: 'left', id: idOf(test), status: test.state }))
    runner.on('fail', (test) => isHook(test) && tell({ ev: 'parent', id: idOf(test) }))
    return
  }
  runner.on('pass', (test) => end(test, 'passed'))
  runner.on('pending', (test) => end(test, 'skipped'))
  runner.on('retry', (test) => tell({ ev: 'left', id: idOf(test), status: 'failed' }))
  runner.on('fail', (test, error) => {
    if (isHook(test) && test.parent) failedHooks.set(test.parent, test.title)
    end(test, 'failed', { failures: [errorOf(error)] })
  })
  runner.once('end', () => {
    // What a failed hook or --bail kept from running has no event.
    if (!parallel)
      runner.suite.eachTest((test) => {
        const matches = !runner._grep || runner._grep.test(test.fullTitle()) !== Boolean(runner._invert)
        if (test.state || test.isPending() || !matches) return
        let hook
        for (let suite = test.parent; suite && !hook; suite = suite.parent) hook = failedHooks.get(suite)
        end(test, 'skipped', { reason: hook ? `not run: ${hook} failed` : 'not run' })
      })
    tell({ ev: 'done' })
  })
}

const rootOf = (start) => {
  for (let folder = path.dirname(start); folder !== path.dirname(folder); folder = path.dirname(folder)) {
    try {
      if (JSON.parse(fs.readFileSync(path.join(folder, 'package.json'), 'utf8')).name === 'mocha') return folder
    } catch {} // no package here: further up
  }
  return undefined
}

if (file) {
  try {
    const root = rootOf(fs.realpathSync(process.argv[1]))
    const main = ['lib/mocha.cjs', 'lib/mocha.js'].map((name) => path.join(root, name)).find((name) => fs.existsSync(name))
    const loaded = require(main)
    const Mocha = loaded.default ?? loaded
    const run = Mocha.prototype.run
    Mocha.prototype.run = function (...given) {
      const runner = run.apply(this, given) // it starts in a later turn of the event loop
      if (runner) listen(runner)
      return runner
    }
  } catch (error) {
    tell({ ev: 'note', message: `no events from mocha: ${error}` })
  }
}
