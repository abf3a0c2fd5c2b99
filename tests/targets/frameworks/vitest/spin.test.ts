import { describe, expect, test } from 'vitest'
test('quick', () => {})
test('spins', () => {
  for (;;);
})
