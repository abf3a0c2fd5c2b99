const assert = require('node:assert')
const x = ;
