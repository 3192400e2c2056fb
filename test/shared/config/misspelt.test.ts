import { expect, test } from 'bun:test'
import { misspeltLine, misspeltVariables } from '../../../shared/config/misspelt.ts'

const nearestOf = (name: string, env: Record<string, string> = {}) =>
  misspeltVariables({ ...env, [name]: 'x' }).map(({ nearest }) => nearest)

test.each([
  ['DATABSE_URL', 'DATABASE_URL'],
  ['DATABASE_URLS', 'DATABASE_URL'],
  ['MASTER_KEY', 'MASTER_KEYS'],
  ['BOOTSTRAP_PLATFORM_KY', 'BOOTSTRAP_PLATFORM_KEY'],
  ['SETTLEMENT_KEEEEYS', 'SETTLEMENT_KEYS'],
  ['PORTS', 'PORT'],
  ['HOSTT', 'HOST'],
])('the variable %s is a misspelling of %s', (name, nearest) => {
  expect(nearestOf(name)).toEqual([nearest])
})

test.each([
  ['is a setting', 'PORT'],
  ['differs in too many characters for its length', 'HOME'],
  ['differs in more than three characters', 'SETTLEMENT_KEEEEEYS'],
  ['has only three characters', 'PRT'],
  ['has more than 40 characters', 'DATABASE_URL'.padEnd(41, '_')],
  ['is like no setting', 'SHELL'],
])('an environment variable that %s does not count as a misspelt setting', (_name, name) =>
  expect(nearestOf(name)).toEqual([]),
)

test('a variable counts as a misspelt setting only if the setting itself is absent or empty', () => {
  expect(nearestOf('DATABSE_URL', { DATABASE_URL: 'postgres://x' })).toEqual([])
  expect(nearestOf('DATABSE_URL', { DATABASE_URL: '' })).toEqual(['DATABASE_URL'])
})

test('the error line about a misspelt variable names the variable and the setting', () => {
  expect(misspeltLine({ name: 'MASTER_KEY', nearest: 'MASTER_KEYS' })).toBe(
    'MASTER_KEY: it is no setting and has no effect; the nearest setting is MASTER_KEYS',
  )
})
