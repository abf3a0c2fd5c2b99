import { test } from 'vitest'
let times = 0
test('same name', () => {})
test('fails once', { retry: 2 }, () => { if (times++ === 0) throw new Error('first time') })
test('same name', () => {})
