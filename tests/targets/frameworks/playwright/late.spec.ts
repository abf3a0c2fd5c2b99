import { test } from '@playwright/test'
// Keeps the process alive after its tests.
test('quick', () => {
  setInterval(() => {}, 1000)
})
