import { afterAll, describe, test } from 'bun:test'
describe('group', () => {
  afterAll(async () => {
    await new Promise((resolve) => setTimeout(resolve, 60000))
  }, 60000)
  test('quick', () => {})
})
