import { describe, expect, test } from 'bun:test'
test('quick', () => {})
test('never ends', async () => {
  const timer = setInterval(() => {}, 1000)
  await new Promise(() => {})
  clearInterval(timer)
})
