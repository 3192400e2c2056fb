import { expect, test } from 'bun:test'
import { readdirSync, readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { OPERATIONS } from '../../../api/client/operations.ts'
import { clientOperations } from '../../support/clientOperations.ts'
import { startTestService } from '../../support/service.ts'

const CLIENT = join(import.meta.dir, '../../../api/client')

test('operations.ts matches the OpenAPI document', async () => {
  await using service = await startTestService({ smtp: false, workers: false })
  const document = (await (await fetch(`${service.url}/openapi.json`)).json()) as any
  const path = join(CLIENT, 'operations.ts')
  if (process.env.UPDATE_CLIENT === 'true') writeFileSync(path, clientOperations(document))
  expect(readFileSync(path, 'utf8')).toBe(clientOperations(document))
})

test('the published client package exports the same entry points as the workspace', async () => {
  const read = (path: string) => JSON.parse(readFileSync(join(CLIENT, path), 'utf8')).exports
  const entries = Object.entries(read('package.json') as Record<string, { default: string }>)
  expect(read('../../package.json')).toEqual(
    Object.fromEntries(
      entries.map(([entry, { default: built }]) => [
        entry.replace('.', './client'),
        built.replace('./dist/', './api/client/').replace(/js$/, 'ts'),
      ]),
    ),
  )
  expect((await import('purser/client')).Purser).toBe(
    (await import('../../../api/client/main.ts')).Purser,
  )
  expect((await import('purser/client/hono')).requirePayment).toBeFunction()
})

test('every operation has a client method', () => {
  const sources = (readdirSync(CLIENT, { recursive: true }) as string[])
    .filter((name) => /^(?!dist).*(?<!operations)\.ts$/.test(name))
    .map((name) => readFileSync(join(CLIENT, name), 'utf8'))
    .join('\n')
  const uncalled = Object.keys(OPERATIONS).filter((id) => !sources.includes(`'${id}'`))
  expect(uncalled).toEqual([])
})
