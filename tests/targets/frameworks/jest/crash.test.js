test('quick', () => {})
test('dies', () => {
  process.kill(process.pid, "SIGSEGV")
  for (;;);
})
