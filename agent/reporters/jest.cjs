// Tells Strobe what jest (26 to 30) does: one JSON line an event, appended to the file that STROBE_TEST_EVENTS names.
'use strict'
const fs = require('node:fs')
const { createRequire } = require('node:module')

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

// Which worker runs a test, and how workers end, is told by none of jest's events.
const pids = new Map()
const watchWorkers = () => {
  try {
    require('node:diagnostics_channel').subscribe('child_process', ({ process: child }) => {
      child.once('exit', (code, signal) => tell({ ev: 'gone', pid: child.pid, code, signal }))
      child.on('message', (message) => {
        const told = Array.isArray(message) ? message[1] : undefined
        if (Array.isArray(told) && told[0] === 'test-case-start' && Array.isArray(told[1])) pids.set(told[1][0], child.pid)
      })
    })
  } catch {} // a Node without the channel
}

const BUILT_IN = new Set(['default', 'summary', 'agent', 'verbose', 'github-actions'])

const failureOf = (text, details) => {
  const [first] = Array.isArray(details) ? details : []
  return { message: String(text), stack: String(text), name: first?.name }
}

module.exports = class StrobeReporter {
  constructor(globalConfig, options, context) {
    this.made = [globalConfig, context]
    this.others = []
    this.seen = new Map() // file → full name → {started, ended}
    if (file) watchWorkers()
  }

  // A reporter on the command line replaces those of the configuration: they are made here, and told of all that happens.
  async bring() {
    try {
      const cli = createRequire(createRequire(fs.realpathSync(process.argv[1])).resolve('jest-cli'))
      const { readConfig } = cli('jest-config')
      const given = process.argv.findIndex((word) => /^(?:-c|--config)(?:=|$)/.test(word))
      const config = given < 0 ? undefined : process.argv[given].includes('=') ? process.argv[given].replace(/^[^=]*=/, '') : process.argv[given + 1]
      const { globalConfig } = await readConfig({ $0: '', _: [], config }, process.cwd())
      for (const [name, options] of globalConfig.reporters ?? []) {
        if (BUILT_IN.has(name)) continue
        const loaded = cli(name)
        const Reporter = loaded.default ?? loaded
        const [ours, context] = this.made
        this.others.push(new Reporter(ours, options, context))
      }
    } catch (error) {
      tell({ ev: 'trouble', message: `jest runs without a reporter of the project's configuration: ${error.message}` })
    }
  }

  async pass(event, ...given) {
    for (const other of this.others) await other[event]?.(...given)
  }

  counts(path, name) {
    const names = this.seen.get(path) ?? this.seen.set(path, new Map()).get(path)
    return names.get(name) ?? names.set(name, { started: 0, ended: 0 }).get(name)
  }

  async onRunStart(results, options) {
    if (file && process.env.STROBE_TEST_BESIDE) await this.bring()
    await this.pass('onRunStart', results, options)
    tell({ ev: 'run', pid: process.pid, cwd: process.cwd(), suites: results.numTotalTestSuites })
  }

  onTestFileStart(test) {
    const told = this.pass('onTestFileStart', test)
    this.begun(test)
    return told
  }

  begun(test) {
    tell({ ev: 'file', file: test.path })
  }

  onTestStart(test) {
    const told = this.pass('onTestStart', test)
    this.begun(test)
    return told
  }

  onTestCaseStart(test, info) {
    this.caseStart(test, info)
    return this.pass('onTestCaseStart', test, info)
  }

  caseStart(test, info) {
    const full = [...(info.ancestorTitles ?? []), info.title].join(' ')
    const counts = this.counts(test.path, full)
    // A test that failed begins again where it is retried; another may have the same name: its result tells.
    counts.again = counts.failed !== undefined && counts.started === counts.ended
    if (!counts.again) counts.started += 1
    if (info.mode === 'skip' || info.mode === 'todo') return
    tell({
      ev: 'start', id: `${test.path}\0${full}\0${counts.started}`, path: [...(info.ancestorTitles ?? []), info.title], file: test.path, pid: pids.get(test.path) ?? process.pid,
      project: this.project(test),
    })
  }

  onTestCaseResult(test, result) {
    this.caseEnd(test, result)
    return this.pass('onTestCaseResult', test, result)
  }

  caseEnd(test, result) {
    const counts = this.counts(test.path, result.fullName)
    const before = counts.failed
    counts.failed = result.status === 'failed' ? result : undefined
    if (result.invocations > 1 && counts.ended > 0) return void this.end(test, result, counts.ended)
    if (counts.again && before) this.end(test, before, counts.ended)
    counts.again = false
    counts.ended += 1
    counts.started = Math.max(counts.started, counts.ended)
    this.end(test, result, counts.ended)
  }

  onTestFileResult(test, results, whole) {
    this.fileEnd(test, results)
    return this.pass('onTestFileResult', test, results, whole)
  }

  fileEnd(test, results) {
    const order = new Map()
    for (const result of results.testResults) {
      const count = (order.get(result.fullName) ?? 0) + 1
      order.set(result.fullName, count)
      const counts = this.counts(test.path, result.fullName)
      if (count > counts.ended) {
        counts.ended = count
        this.end(test, result, count)
      }
    }
    const error = results.testExecError
    if (error) tell({ ev: 'error', kind: 'file', file: test.path, message: this.words(error), stack: error.stack })
    else if (results.failureMessage && !results.testResults.some((one) => one.status === 'failed'))
      tell({ ev: 'error', kind: 'file', file: test.path, message: results.failureMessage, stack: results.failureMessage })
    tell({ ev: 'fileEnd', file: test.path })
  }

  onTestResult(test, results, whole) {
    this.fileEnd(test, results)
    return this.pass('onTestResult', test, results, whole)
  }

  words(error) {
    return error.message || error.stack || String(error)
  }

  project(test) {
    return test.context?.config?.displayName?.name || undefined
  }

  end(test, result, count) {
    const status = { passed: 'passed', failed: 'failed', focused: 'passed' }[result.status] ?? 'skipped'
    tell({
      ev: 'end', id: `${test.path}\0${result.fullName}\0${count}`, path: [...result.ancestorTitles, result.title], file: test.path, line: result.location?.line, status,
      todo: result.status === 'todo', ms: result.duration ?? undefined, project: this.project(test),
      failures: (result.failureMessages ?? []).map((one) => failureOf(one, result.failureDetails)),
      retries: result.invocations > 1 ? result.invocations - 1 : undefined,
    })
  }

  async onRunComplete(contexts, results) {
    await this.pass('onRunComplete', contexts, results)
    if (results.runExecError) tell({ ev: 'error', kind: 'unhandled', message: this.words(results.runExecError), stack: results.runExecError.stack })
    tell({ ev: 'done', ok: results.success })
  }

  getLastError() {
    for (const other of this.others) {
      const error = other.getLastError?.()
      if (error) return error
    }
  }
}
