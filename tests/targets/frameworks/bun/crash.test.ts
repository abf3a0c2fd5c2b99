import { describe, expect, test } from 'bun:test'
test('quick', () => {})
test('dies', () => {
  process.kill(process.pid, "SIGSEGV")
  for (;;);
})
