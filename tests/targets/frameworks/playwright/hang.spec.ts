import { expect, test } from '@playwright/test'
test('quick', () => {})
test('never ends', async () => {
  const timer = setInterval(() => {}, 1000)
  await new Promise(() => {})
  clearInterval(timer)
})
