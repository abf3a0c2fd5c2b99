// Tells Strobe what vitest (1 to 4) does: one JSON line an event, appended to the file that STROBE_TEST_EVENTS names.
// In the main process it is a reporter. It adds itself to the set-up files, so that each worker tells of a test's start before it runs: a test
// that never gives the event loop back, or ends its process, is known too.
import { subscribe } from 'node:diagnostics_channel'
import { appendFileSync, realpathSync } from 'node:fs'
import { createRequire } from 'node:module'
import { resolve } from 'node:path'
import { pathToFileURL } from 'node:url'

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

const worker = globalThis.__vitest_worker__
if (worker && file) {
  try {
    const { afterEach, beforeEach } = await import('vitest')
    afterEach((context) => tell({ ev: 'left', id: context.task.id, status: context.task.result?.state === 'fail' ? 'failed' : 'passed' }))
    beforeEach((context) => {
      const test = context.task
      const path = []
      for (let one = test; one && one !== test.file; one = one.suite) if (one.name) path.unshift(one.name)
      tell({ ev: 'start', id: test.id, path, file: test.file.filepath, line: test.location?.line, pid: process.pid, project: test.file.projectName || undefined })
    })
  } catch (error) {
    tell({ ev: 'note', message: `no live starts from workers: ${error}` })
  }
}

const stackOf = (error) =>
  error.stacks?.length
    ? error.stacks.map((one) => ({ function: one.method || undefined, file: one.file, line: one.line }))
    : undefined
const failureOf = (error) => ({
  message: error.name && error.name !== 'AssertionError' && error.name !== 'Error' && !String(error.message).startsWith(error.name)
    ? `${error.name}: ${error.message}` : String(error.message ?? error),
  diff: error.diff, frames: stackOf(error), stack: stackOf(error) ? undefined : error.stack,
})

const pathOf = (test) => {
  const path = [test.name]
  for (let one = test.parent; one && one.type === 'suite'; one = one.parent) path.unshift(one.name)
  return path
}

export default class {
  async onInit(vitest) {
    this.vitest = vitest
    if (file && process.env.STROBE_TEST_BESIDE) await this.bring(vitest)
    this.old = typeof vitest.version === 'string' ? Number.parseInt(vitest.version) < 3 : true
    this.told = new Set()
    this.output = new Map()
    if (!file) return
    try {
      subscribe('child_process', ({ process: child }) => child.once('exit', (code, signal) => tell({ ev: 'gone', pid: child.pid, code, signal })))
    } catch {} // a Node without the channel
  }

  // A reporter on the command line replaces those of the configuration: they are made here, and added to vitest's list.
  async bring(vitest) {
    const given = (vitest.vite ?? vitest.server)?.config?.test?.reporters ?? []
    for (const one of Array.isArray(given) ? given : [given]) {
      const [name, options] = Array.isArray(one) ? one : [one, {}]
      if (name === 'default') continue
      try {
        const Reporter = typeof name === 'string' ? await this.find(vitest, name) : undefined
        const reporter = Reporter ? new Reporter(options ?? {}) : name
        vitest.reporters.push(reporter)
        await reporter.onInit?.(vitest)
      } catch (error) {
        tell({ ev: 'trouble', message: `vitest runs without the reporter ${String(name)} of the project's configuration: ${error.message}` })
      }
    }
  }

  async find(vitest, name) {
    const main = pathToFileURL(realpathSync(process.argv[1]))
    const known = (await import(new URL('dist/reporters.js', main))).ReportersMap?.[name]
    if (known) return known
    const root = vitest.config.root
    const path = name === 'html' ? createRequire(main).resolve('@vitest/ui/reporter') : name.startsWith('.') ? resolve(root, name) : createRequire(`${root}/`).resolve(name)
    const loaded = typeof vitest.import === 'function' ? await vitest.import(path) : await import(pathToFileURL(path))
    return loaded.default
  }

  listen(projects) {
    const self = new URL(import.meta.url).pathname
    for (const project of projects ?? []) {
      const settings = project?.config
      if (settings && Array.isArray(settings.setupFiles) && !settings.setupFiles.includes(self) && !settings.browser?.enabled) settings.setupFiles.push(decodeURIComponent(self))
    }
  }

  onTestRunStart(specifications) {
    this.listen(this.vitest.projects)
    tell({ ev: 'run', files: specifications.length, pid: process.pid, cwd: process.cwd() })
  }

  onPathsCollected(paths) {
    if (!this.old) return
    this.listen(this.vitest.projects)
    tell({ ev: 'run', files: paths?.length, pid: process.pid, cwd: process.cwd() })
  }

  onTestModuleQueued(module) {
    tell({ ev: 'file', file: module.moduleId })
  }

  onTestModuleCollected(module) {
    tell({ ev: 'collected', file: module.moduleId, count: [...module.children.allTests()].length })
  }

  // Hooks of files and suites may hang as tests do.
  onHookStart(hook) {
    if (hook.name === 'beforeAll' || hook.name === 'afterAll') tell({ ev: 'start', ...this.hook(hook) })
  }

  onHookEnd(hook) {
    if (hook.name === 'beforeAll' || hook.name === 'afterAll') tell({ ev: 'parent', id: this.hook(hook).id })
  }

  hook({ name, entity }) {
    const path = entity.type === 'suite' ? pathOf(entity) : []
    return { id: `${entity.id} ${name}`, path: [...path, `(${name})`], file: (entity.module ?? entity).moduleId }
  }

  onTestCaseReady(test) {
    if (test.options.mode === 'run' || test.options.mode === 'only')
      tell({ ev: 'start', id: test.id, path: pathOf(test), file: test.module.moduleId, line: test.location?.line, project: test.project?.name || undefined })
  }

  onTestCaseResult(test) {
    const result = test.result()
    const meta = test.diagnostic()
    tell({
      ev: 'end', id: test.id, path: pathOf(test), file: test.module.moduleId, line: test.location?.line, status: result.state, todo: test.options.mode === 'todo',
      project: test.project?.name || undefined, ms: meta?.duration, reason: result.note, failures: (result.errors ?? []).map(failureOf), output: this.output.get(test.id),
      retries: meta?.retryCount || undefined,
    })
    this.output.delete(test.id)
  }

  onUserConsoleLog(log) {
    if (!log.taskId) return
    const had = this.output.get(log.taskId) ?? ''
    if (had.length < TEXT_MAX) this.output.set(log.taskId, had + log.content.slice(0, TEXT_MAX))
  }

  onTestSuiteResult(suite) {
    for (const error of suite.errors?.() ?? []) tell({ ev: 'error', kind: 'hook', path: pathOf(suite), file: suite.module.moduleId, ...failureOf(error) })
  }

  onTestModuleEnd(module) {
    for (const error of module.errors()) tell({ ev: 'error', kind: 'file', file: module.moduleId, ...failureOf(error) })
    tell({ ev: 'fileEnd', file: module.moduleId, status: module.state() })
  }

  onTestRunEnd(modules, errors, reason) {
    for (const error of errors ?? []) tell({ ev: 'error', kind: 'unhandled', ...failureOf(error) })
    tell({ ev: 'done', reason })
  }

  // vitest 1 and 2
  onCollected(files) {
    if (!this.old) return
    for (const one of files ?? []) tell({ ev: 'collected', file: one.filepath, count: this.testsOf(one).length })
  }

  onTaskUpdate() {
    if (this.old) for (const one of this.vitest.state.getFiles()) for (const test of this.testsOf(one)) this.oldEnd(test, one, false)
  }

  onFinished(files, errors) {
    if (!this.old) return
    for (const one of files ?? []) {
      for (const test of this.testsOf(one)) this.oldEnd(test, one, true)
      if (this.testsOf(one).length === 0) for (const error of one.result?.errors ?? []) tell({ ev: 'error', kind: 'file', file: one.filepath, ...failureOf(error) })
    }
    for (const error of errors ?? []) tell({ ev: 'error', kind: 'unhandled', ...failureOf(error) })
    tell({ ev: 'done' })
  }

  testsOf(task) {
    return (task.tasks ?? []).flatMap((one) => (one.type === 'suite' ? this.testsOf(one) : [one]))
  }

  oldEnd(test, one, last) {
    const state = test.result?.state
    const ended = state === 'pass' || state === 'fail' || test.mode === 'skip' || test.mode === 'todo'
    if (this.told.has(test.id) || !(ended || last)) return
    this.told.add(test.id)
    const path = []
    for (let part = test; part && part !== one; part = part.suite) if (part.name) path.unshift(part.name)
    tell({
      ev: 'end', id: test.id, path, file: one.filepath, line: test.location?.line, status: { pass: 'passed', fail: 'failed' }[state] ?? 'skipped', todo: test.mode === 'todo',
      ms: test.result?.duration, reason: test.result?.note, failures: state === 'fail' ? (test.result.errors ?? []).map(failureOf) : [],
    })
  }
}
