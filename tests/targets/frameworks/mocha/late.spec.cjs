// Keeps the process alive after its tests.
it('quick', () => {
  setInterval(() => {}, 1000)
})
