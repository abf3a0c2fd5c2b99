describe('group', () => {
  after(async function () {
    this.timeout(0)
    await new Promise((resolve) => setTimeout(resolve, 60000))
  })
  it('quick', () => {})
})
