import { after, describe, it as test } from 'node:test'
// Keeps the process alive after its tests.
test('quick', () => {
  setInterval(() => {}, 1000)
})
