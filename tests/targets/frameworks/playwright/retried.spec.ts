import { test } from '@playwright/test'
test.describe.configure({ retries: 2 })
test('fails once', ({}, info) => { if (info.retry === 0) throw new Error('first time') })
