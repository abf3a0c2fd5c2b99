import { describe, expect, test } from 'vitest'
test('quick', () => {})
test('dies', () => {
  process.kill(process.pid, "SIGSEGV")
  for (;;);
})
