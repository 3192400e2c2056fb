/**
 * Tests that each text whose schema has a pattern also has a rule in words, because a pattern alone tells the caller
 * nothing.
 */
import { expect, test } from 'bun:test'
import { readFileSync } from 'node:fs'

/** Returns the parts of TypeScript code that describe a text with a pattern, up to the end of the description. */
const patterned = (code: string): string[] =>
  code
    .split('t.String({')
    .slice(1)
    .map((rest) => rest.slice(0, rest.search(/\}\)(?=[,;)\s])/)))
    .filter((options) => /\bpattern[:,]/.test(options))

test('each input field that is checked against a pattern also has an error message that states the rule', () => {
  const files = [...new Bun.Glob('api/**/*.ts').scanSync()].filter(
    (file) => !/^api\/(?:web|client|docs)\//.test(file),
  )
  const texts = files.flatMap((file) =>
    patterned(readFileSync(file, 'utf8')).map((options) => ({ file, options })),
  )
  expect(texts.length).toBeGreaterThan(30)
  expect(texts.filter(({ options }) => !/\berror[:,]/.test(options))).toEqual([])
})
