Deno.test('quick', () => {})
Deno.test('dies', () => {
  Deno.kill(Deno.pid, 'SIGKILL')
  for (;;);
})
