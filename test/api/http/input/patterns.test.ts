/**
 * Tests that each text input with a pattern also has a description of the rule in words, because a pattern alone does
 * not help the caller.
 */
import { expect, test } from 'bun:test'
import { readFileSync } from 'node:fs'

/** Returns the parts of TypeScript code that declare a text with a pattern, each up to the end of its description. */
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
