import { describe, expect, test } from 'bun:test'
test('quick', () => {})
test('spins', () => {
  for (;;);
})
