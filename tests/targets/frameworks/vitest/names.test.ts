import { describe, expect, test } from 'vitest'
test("says \"hi\" and it's fine", () => {})
test("ünï ☃ 雪", () => {})
test("a [b] (c) {d} $1 ^*+?.|\\ x", () => {})
test("comma, semi; colon: and/slash", () => {})
test("is true when 3 > 2", () => {})
