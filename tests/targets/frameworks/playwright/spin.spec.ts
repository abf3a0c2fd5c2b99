import { expect, test } from '@playwright/test'
test('quick', () => {})
test('spins', () => {
  for (;;);
})
