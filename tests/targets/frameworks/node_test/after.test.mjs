import { after, describe, it as test } from 'node:test'
describe('group', () => {
  after(async () => {
    await new Promise((resolve) => setTimeout(resolve, 60000))
  })
  test('quick', () => {})
})
