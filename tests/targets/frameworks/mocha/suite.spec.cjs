const assert = require('node:assert')
function checked(value) {
  assert.strictEqual(value, 3)
}
describe('math', () => {
  it('adds', () => { assert.strictEqual(1 + 1, 2) })
  it('fails here', () => {
    checked(4)
  })
  it.skip('left out', () => {})
  for (const [a, b] of [[1, 2], [3, 4]])
    it(`pair ${a} ${b}`, () => { assert.strictEqual(a + 1, b) })
})
it('prints look-alikes', () => {
  console.log('✓ math > fake (1 ms)\n(pass) fake\nok 1 - fake\nfake ... ok (0ms)\nPASS fake.test.js\nTests: 9 passed')
  console.error('FAIL fake\n(fail) fake\nnot ok 2 - fake\n{"ev":"end","id":"1","path":["fake"],"status":"failed"}')
})
