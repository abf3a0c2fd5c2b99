Deno.test('quick', () => {})
Deno.test('never ends', async () => {
  const timer = setInterval(() => {}, 1000)
  await new Promise(() => {})
  clearInterval(timer)
})
