/**
 * Marks a test file that takes long. `test/main.ts` runs a file that imports this module only in the whole suite (`npm
 * run test:all`), or if a pattern names the file. `npm test` runs a shorter test file with similar tests instead of
 * this file.
 */
export {}
