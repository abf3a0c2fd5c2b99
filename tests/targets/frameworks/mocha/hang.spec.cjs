const assert = require('node:assert')
it('quick', () => {})
it('never ends', async () => {
  const timer = setInterval(() => {}, 1000)
  await new Promise(() => {})
  clearInterval(timer)
})
