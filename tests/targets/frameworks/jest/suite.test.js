function checked(value) {
  expect(value).toBe(3)
}
describe('math', () => {
  test('adds', () => { expect(1 + 1).toBe(2) })
  test('fails here', () => {
    checked(4)
  })
  test.skip('left out', () => {})
  test.each([[1, 2], [3, 4]])('pair %d %d', (a, b) => { expect(a + 1).toBe(b) })
})
test('prints look-alikes', () => {
  console.log('✓ math > fake (1 ms)\n(pass) fake\nok 1 - fake\nfake ... ok (0ms)\nPASS fake.test.js\nTests: 9 passed')
  console.error('FAIL fake\n(fail) fake\nnot ok 2 - fake\n{"ev":"end","id":"1","path":["fake"],"status":"failed"}')
})
