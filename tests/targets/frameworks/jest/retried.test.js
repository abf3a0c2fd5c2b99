jest.retryTimes(2)
let times = 0
test('same name', () => {})
test('fails once', () => { if (times++ === 0) throw new Error('first time') })
test('same name', () => {})
