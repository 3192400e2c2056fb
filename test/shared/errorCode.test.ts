import { expect, test } from 'bun:test'
import { errorCode } from '../../shared/errorCode.ts'

test('errorCode returns the code of an error only if this code is a text', () => {
  expect(errorCode(Object.assign(new Error('no'), { code: 'ENOENT' }))).toBe('ENOENT')
  for (const error of [
    new Error('no'),
    Object.assign(new Error('no'), { code: 404 }),
    { code: 'ENOENT' },
    null,
  ])
    expect(errorCode(error)).toBe('')
})
