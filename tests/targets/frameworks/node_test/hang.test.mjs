import assert from 'node:assert'
import { describe, it as test } from 'node:test'
test('quick', () => {})
test('never ends', async () => {
  const timer = setInterval(() => {}, 1000)
  await new Promise(() => {})
  clearInterval(timer)
})
