import { afterAll, describe, test } from 'bun:test'
// Keeps the process alive after its tests.
test('quick', () => {
  setInterval(() => {}, 1000)
})
