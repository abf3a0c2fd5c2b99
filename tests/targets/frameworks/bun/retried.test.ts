import { test } from 'bun:test'
let times = 0
test('same name', () => {})
test('fails once', () => { if (times++ === 0) throw new Error('first time') }, { retry: 2 })
test('same name', () => {})
