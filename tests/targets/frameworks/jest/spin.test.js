test('quick', () => {})
test('spins', () => {
  for (;;);
})
