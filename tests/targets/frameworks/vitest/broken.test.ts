import { describe, expect, test } from 'vitest'
const x = ;
