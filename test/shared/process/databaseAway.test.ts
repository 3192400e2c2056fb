import { expect, test } from 'bun:test'
import { isDatabaseUnavailable } from '../../../shared/process/databaseAway.ts'

const coded = (code: unknown, message = 'failed') => Object.assign(new Error(message), { code })

test.each(['ECONNREFUSED', 'EPIPE', 'ENOENT', '08006', '53300', '57P01', '57P03', '25006'])(
  'an error with the code %s means that the database is unavailable',
  (code) => expect(isDatabaseUnavailable(coded(code))).toBe(true),
)

test.each([
  'Connection terminated unexpectedly',
  'timeout exceeded when trying to connect',
  'Query read timeout',
  'Client has encountered a connection error and is not queryable',
])('an error with the message "%s" means that the database is unavailable', (message) => {
  expect(isDatabaseUnavailable(new Error(message))).toBe(true)
  expect(isDatabaseUnavailable(coded(7, message))).toBe(true)
})

test.each([
  ['an error of a statement', coded('23505', 'duplicate key value')],
  [
    'a statement that took too long',
    coded('57014', 'canceling statement due to statement timeout'),
  ],
  ['a code within another code', coded('108006')],
  ['a code that is no text', coded(['ECONNREFUSED'])],
  ['an error without a code', new Error('failed')],
  ['an object that is no error', { code: 'ECONNREFUSED', message: 'connection terminated' }],
  ['a text', 'connection terminated'],
  ['nothing', undefined],
])('%s does not mean that the database is unavailable', (_name, error) => {
  expect(isDatabaseUnavailable(error)).toBe(false)
})
