/**
 * Marks a test file that takes long. `test/main.ts` runs a file that imports this module only in the whole suite (`npm
 * run test:all`), or if a pattern names the file. A shorter test file with similar tests represents this file in `npm
 * test`.
 */
export {}
