import { afterAll, describe, test } from 'vitest'
// Keeps the process alive after its tests.
test('quick', () => {
  setInterval(() => {}, 1000)
})
