/**
 * For files that take long: `test/main.ts` runs the files that import this one in the whole suite (`npm run test:all`), or when a
 * pattern names them. A sibling represents them in `npm test`.
 */
export {}
