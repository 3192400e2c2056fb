/**
 * Marks a test file that takes long. `test/main.ts` runs it only in `npm run test:rest`, in the whole suite (`npm run
 * test:all`), or if a pattern names the file. Otherwise, `npm test` runs a shorter test file with similar tests.
 */
export {}
