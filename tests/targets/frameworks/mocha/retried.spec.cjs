let times = 0
it('same name', () => {})
it('fails once', function () { this.retries(2); if (times++ === 0) throw new Error('first time') })
it('same name', () => {})
