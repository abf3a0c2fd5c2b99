import assert from 'node:assert'
import { describe, it as test } from 'node:test'
test('quick', () => {})
test('spins', () => {
  for (;;);
})
