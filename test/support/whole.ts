/**
 * Marks a test file that takes long. `test/main.ts` runs a file that imports this module only in the whole suite (`npm
 * run test:all`), or if a pattern names the file. A similar but shorter test file represents this file in `npm test`.
 */
export {}
