import { describe, expect, test } from 'vitest'
import { existsSync, writeFileSync } from 'node:fs'

// Passes only while the other file's test runs too.
test('meets on the right', async () => {
  writeFileSync('here.right', '')
  const end = Date.now() + 20000
  while (!existsSync('here.left')) {
    if (Date.now() > end) throw new Error('left did not come')
    await new Promise((resolve) => setTimeout(resolve, 10))
  }
  await new Promise((resolve) => setTimeout(resolve, 200))
}, 30000)
