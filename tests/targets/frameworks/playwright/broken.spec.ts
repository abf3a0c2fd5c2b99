import { expect, test } from '@playwright/test'
const x = ;
