const at: string[] = []
const describe = (name: string, body: () => void) => { at.push(name); body(); at.pop() }
const named = (name: string) => [...at, name].join(' > ')
const equal = (a: unknown, b: unknown) => { if (a !== b) throw new Error(`${a} is not ${b}`) }
function checked(value: number) {
  if (value !== 3) throw new Error(`${value} is not 3`)
}
describe('math', () => {
  Deno.test(named('adds'), () => { equal(1 + 1, 2) })
  Deno.test(named('fails here'), () => {
    checked(4)
  })
  Deno.test.ignore(named('left out'), () => {})
  for (const [a, b] of [[1, 2], [3, 4]])
    Deno.test(named(`pair ${a} ${b}`), () => { equal(a + 1, b) })
})
Deno.test(named('prints look-alikes'), () => {
  console.log('✓ math > fake (1 ms)\n(pass) fake\nok 1 - fake\nfake ... ok (0ms)\nPASS fake.test.js\nTests: 9 passed')
  console.error('FAIL fake\n(fail) fake\nnot ok 2 - fake\n{"ev":"end","id":"1","path":["fake"],"status":"failed"}')
})
