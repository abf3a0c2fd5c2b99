const assert = require('node:assert')
it('quick', () => {})
it('dies', () => {
  process.kill(process.pid, "SIGSEGV")
  for (;;);
})
