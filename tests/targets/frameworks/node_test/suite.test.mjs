import assert from 'node:assert'
import { describe, it as test } from 'node:test'
function checked(value) {
  assert.strictEqual(value, 3)
}
describe('math', () => {
  test('adds', () => { assert.strictEqual(1 + 1, 2) })
  test('fails here', () => {
    checked(4)
  })
  test.skip('left out', () => {})
  for (const [a, b] of [[1, 2], [3, 4]])
    test(`pair ${a} ${b}`, () => { assert.strictEqual(a + 1, b) })
})
test('prints look-alikes', () => {
  console.log('✓ math > fake (1 ms)\n(pass) fake\nok 1 - fake\nfake ... ok (0ms)\nPASS fake.test.js\nTests: 9 passed')
  console.error('FAIL fake\n(fail) fake\nnot ok 2 - fake\n{"ev":"end","id":"1","path":["fake"],"status":"failed"}')
})
