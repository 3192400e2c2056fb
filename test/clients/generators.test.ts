/** Generates clients from the live OpenAPI document, compiles the clients, and runs them against the service. */
import { afterAll, beforeAll, expect, test } from 'bun:test'
import { execFile } from 'node:child_process'
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { promisify } from 'node:util'
import { testWhole } from '../support/database/extent.ts'
import { type Agent, startTestService, type TestService } from '../support/service.ts'
import '../support/whole.ts'

const BIN = join(import.meta.dir, 'node_modules/.bin')
const folder = mkdtempSync(join(tmpdir(), 'purser-generators-'))
let service: TestService
let agent: Agent
beforeAll(async () => {
  service = await startTestService({ smtp: false, workers: false })
  agent = await service.newAgent()
  writeFileSync(join(folder, 'package.json'), '{"type":"module","private":true}')
})
afterAll(async () => {
  await service[Symbol.asyncDispose]()
  rmSync(folder, { recursive: true, force: true })
})

/** Runs a program. If the program fails, the thrown error contains the program's output. */
async function run(program: string, args: string[], env: Record<string, string> = {}) {
  const { PATH = '', HOME = '' } = process.env
  const options = { cwd: folder, env: { PATH, HOME, ...env } }
  const ran = await promisify(execFile)(program, args, options).catch((error) => error)
  if (ran instanceof Error) throw new Error(`${ran.message}\n${(ran as any).stdout}`)
  return String(ran.stdout)
}

const OPTIONS = '--noEmit --strict --module esnext --moduleResolution bundler --target es2022'
const compile = (file: string) =>
  run(join(BIN, 'tsc'), [...OPTIONS.split(' '), '--lib', 'es2023,dom,dom.iterable', file])
const execute = (file: string) =>
  run(process.execPath, [file], { KEY: agent.key, API: service.url })

test('the types from openapi-typescript compile, and the type of a 404 response contains the error code', async () => {
  await run(join(BIN, 'openapi-typescript'), [`${service.url}/openapi.json`, '-o', 'schema.d.ts'])
  writeFileSync(
    join(folder, 'types.ts'),
    `
    import type { paths } from './schema.d.ts'
    declare const process: { env: Record<string, string> }
    type Get = paths['/v0/messages/{messageId}']['get']
    type Lost = Get['responses'][404]['content']['application/json']
    type Page = paths['/v0/messages']['get']['responses'][200]['content']['application/json']
    export type Put = paths['/v0/sellers/endpoints']['put']['responses']
    export const sameTwice = (put: Put[200]): Put[201] => put
    export const noBody: paths['/v0/platform/projects/{projectId}/rotate-key']['post']['responses'][415] | null = null
    const headers = { authorization: 'Bearer ' + process.env.KEY }
    const get = (path: string) => fetch(process.env.API + path, { headers })
    const page = (await (await get('/v0/messages')).json()) as Page
    const lost = (await (await get('/v0/messages/%3Cno%40where%3E')).json()) as Lost
    const error: string = lost.error
    // @ts-expect-error: the type has no such field
    lost.nothing
    console.log(JSON.stringify([page.count, error, lost.status]))
    `,
  )
  await compile('types.ts')
  expect(JSON.parse(await execute('types.ts'))).toEqual([0, 'not_found', 404])
})

testWhole(
  'the client of @hey-api/openapi-ts compiles, sends mail, and reads the error of a 404',
  async () => {
    await run(join(BIN, 'openapi-ts'), ['-i', `${service.url}/openapi.json`, '-o', 'hey'])
    writeFileSync(
      join(folder, 'calls.ts'),
      `
    import { client } from './hey/client.gen'
    import { getMessages, getMessagesByMessageId, postMessagesSend } from './hey/sdk.gen'
    declare const process: { env: Record<string, string> }
    client.setConfig({ baseUrl: process.env.API, auth: process.env.KEY })
    const body = { to: ['ada@example.com'], subject: 'Offer', text: 'Shall I order?' }
    const sent = await postMessagesSend({ body })
    const page = await getMessages({ query: { limit: 1 } })
    const found = await getMessagesByMessageId({ path: { messageId: sent.data!.messageId } })
    const lost = await getMessagesByMessageId({ path: { messageId: '<no@where>' } })
    const error: string = lost.error!.error
    console.log(JSON.stringify([page.data!.messages[0]!.subject, found.data!.text, error]))
    `,
    )
    await compile('calls.ts')
    expect(JSON.parse(await execute('calls.ts'))).toEqual(['Offer', 'Shall I order?', 'not_found'])
  },
)
