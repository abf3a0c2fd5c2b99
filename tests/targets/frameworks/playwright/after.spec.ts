import { test } from '@playwright/test'
test.describe('group', () => {
  test.afterAll(async () => {
    await new Promise((resolve) => setTimeout(resolve, 60000))
  })
  test('quick', () => {})
})
