// Tells Strobe what @playwright/test does: one JSON line an event, appended to the file that STROBE_TEST_EVENTS names.
import { appendFileSync } from 'node:fs'
import { subscribe } from 'node:diagnostics_channel'

const file = process.env.STROBE_TEST_EVENTS
// Half of a surrogate pair is no text: readers of JSON refuse the whole event. What a failure says may be as large as what it compares.
const TEXT_MAX = 65536
const asText = (_key, value) =>
  typeof value === 'string' ? value.slice(0, TEXT_MAX).replace(/[\ud800-\udbff](?![\udc00-\udfff])|(?<![\ud800-\udbff])[\udc00-\udfff]/g, '\ufffd') : value
const tell = (event) => {
  if (!file) return
  try {
    appendFileSync(file, JSON.stringify(event, asText) + '\n')
  } catch {} // the run's folder is gone: nobody listens any more
}

const pids = new Map() // test → the worker that runs it; its events do not say
try {
  subscribe('child_process', ({ process: child }) => {
    child.once('exit', (code, signal) => tell({ ev: 'gone', pid: child.pid, code, signal }))
    child.on('message', (message) => {
      const test = message?.params?.params?.testId ?? message?.params?.testId
      if (typeof test === 'string') pids.set(test, child.pid)
    })
  })
} catch {} // a Node without the channel

const failureOf = (error) => ({ message: error.message ?? error.value ?? 'failed', stack: error.stack, frames: error.stack ? undefined : placed(error.location) })
const placed = (location) => (location ? [{ file: location.file, line: location.line }] : undefined)

const start = (chunks) => {
  let text = ''
  for (const chunk of chunks) {
    if (text.length >= TEXT_MAX) break
    text += String(chunk).slice(0, TEXT_MAX)
  }
  return text
}

export default class {
  printsToStdio() {
    return false
  }

  common(test) {
    const [, project, , ...path] = test.titlePath()
    return { id: test.id, path, file: test.location.file, line: test.location.line, project: project || undefined }
  }

  onBegin(config, suite) {
    tell({ ev: 'run', pid: process.pid, cwd: process.cwd(), total: suite.allTests().length, workers: config.workers })
  }

  onTestBegin(test) {
    tell({ ev: 'start', ...this.common(test), pid: pids.get(test.id) })
  }

  onStepBegin(test, result, step) {
    if (step.category !== 'pw:api' && step.category !== 'expect') tell({ ev: 'step', id: test.id, step: step.title })
  }

  onTestEnd(test, result) {
    const skipped = result.status === 'skipped'
    const passed = !skipped && result.status === test.expectedStatus
    const failures = result.errors.map(failureOf)
    if (!passed && !skipped && failures.length === 0)
      failures.push({ message: result.status === 'passed' ? 'passed, though it was expected to fail' : `${result.status} after ${result.duration} ms` })
    tell({
      ev: 'end', ...this.common(test), status: skipped ? 'skipped' : passed ? 'passed' : 'failed', ms: result.duration, failures: passed || skipped ? [] : failures,
      reason: skipped ? test.annotations.find((one) => one.type === 'skip' || one.type === 'fixme')?.description : undefined, retries: result.retry || undefined,
      output: start([...result.stdout, ...result.stderr]) || undefined,
    })
  }

  onError(error) {
    const failure = failureOf(error)
    tell({ ev: 'error', kind: 'unhandled', file: error.location?.file, ...failure })
  }

  onEnd(result) {
    tell({ ev: 'done', status: result.status })
  }
}
