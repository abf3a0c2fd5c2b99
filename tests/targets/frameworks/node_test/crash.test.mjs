import assert from 'node:assert'
import { describe, it as test } from 'node:test'
test('quick', () => {})
test('dies', () => {
  process.kill(process.pid, "SIGSEGV")
  for (;;);
})
