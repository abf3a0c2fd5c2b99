import { expect, test } from '@playwright/test'
test('quick', () => {})
test('dies', () => {
  process.kill(process.pid, "SIGSEGV")
  for (;;);
})
