import { expect, test } from '@playwright/test'
import { existsSync, writeFileSync } from 'node:fs'

// Passes only while the other file's test runs too.
test('meets on the left', async () => {
  writeFileSync('here.left', '')
  const end = Date.now() + 20000
  while (!existsSync('here.right')) {
    if (Date.now() > end) throw new Error('right did not come')
    await new Promise((resolve) => setTimeout(resolve, 10))
  }
  await new Promise((resolve) => setTimeout(resolve, 200))
})
