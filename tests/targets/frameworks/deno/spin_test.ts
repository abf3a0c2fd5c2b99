Deno.test('quick', () => {})
Deno.test('spins', () => {
  for (;;);
})
