const assert = require('node:assert')
it('quick', () => {})
it('spins', () => {
  for (;;);
})
