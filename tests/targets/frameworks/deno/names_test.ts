Deno.test("says \"hi\" and it's fine", () => {})
Deno.test("ünï ☃ 雪", () => {})
Deno.test("a [b] (c) {d} $1 ^*+?.|\\ x", () => {})
Deno.test("comma, semi; colon: and/slash", () => {})
