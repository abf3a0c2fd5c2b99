// Tells Strobe what jest (26 to 30) does: one JSON line an event, appended to the file that STROBE_TEST_EVENTS names.
'use strict'
const fs = require('node:fs')

const file = process.env.STROBE_TEST_EVENTS
const tell = (event) => {
  if (!file) return
  try {
    fs.appendFileSync(file, JSON.stringify(event) + '\n')
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

const failureOf = (text, details) => {
  const [first] = Array.isArray(details) ? details : []
  return { message: String(text), stack: String(text), name: first?.name }
}

module.exports = class StrobeReporter {
  constructor() {
    this.seen = new Map() // file → full name → {started, ended}
    if (file) watchWorkers()
  }

  counts(path, name) {
    const names = this.seen.get(path) ?? this.seen.set(path, new Map()).get(path)
    return names.get(name) ?? names.set(name, { started: 0, ended: 0 }).get(name)
  }

  onRunStart(results) {
    tell({ ev: 'run', pid: process.pid, cwd: process.cwd(), suites: results.numTotalTestSuites })
  }

  onTestFileStart(test) {
    tell({ ev: 'file', file: test.path })
  }

  onTestStart(test) {
    this.onTestFileStart(test)
  }

  onTestCaseStart(test, info) {
    const full = [...(info.ancestorTitles ?? []), info.title].join(' ')
    const counts = this.counts(test.path, full)
    counts.started += 1
    if (info.mode === 'skip' || info.mode === 'todo') return
    tell({
      ev: 'start', id: `${test.path}\0${full}\0${counts.started}`, path: [...(info.ancestorTitles ?? []), info.title], file: test.path, pid: pids.get(test.path) ?? process.pid,
      project: this.project(test),
    })
  }

  onTestCaseResult(test, result) {
    const counts = this.counts(test.path, result.fullName)
    counts.ended += 1
    counts.started = Math.max(counts.started, counts.ended)
    this.end(test, result, counts.ended)
  }

  onTestFileResult(test, results) {
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

  onTestResult(test, results) {
    this.onTestFileResult(test, results)
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

  onRunComplete(contexts, results) {
    if (results.runExecError) tell({ ev: 'error', kind: 'unhandled', message: this.words(results.runExecError), stack: results.runExecError.stack })
    tell({ ev: 'done', ok: results.success })
  }

  getLastError() {}
}
