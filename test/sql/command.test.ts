/** Tests the errors of commands that work on the database. */
import { afterAll, beforeAll, expect, test } from 'bun:test'
import { listAudit, ORGANIZATION } from '../../sql/account/audit.ts'
import { createPlatformKey, PLATFORM_KEYS_MAX } from '../../sql/account/keys/platformKeys.ts'
import { createProject } from '../../sql/account/projects/projects.ts'
import { createTestDatabase, type TestDatabase } from '../support/database/database.ts'
import { startProcess } from '../support/process/process.ts'
import '../support/long.ts'

const ADDRESS = `0x${'3c'.repeat(20)}`

let database: TestDatabase
beforeAll(async () => {
  database = await createTestDatabase()
})
afterAll(() => database[Symbol.asyncDispose]())

async function run(file: string, args: string[], env: Record<string, string> = {}) {
  const settings = { DATABASE_URL: database.url, MAIL_DOMAIN: 'mail.test', ...env }
  await using process = startProcess(file, settings, args)
  return { args, code: await process.exited, out: process.stdout(), error: process.stderr() }
}
const runAll = (file: string, errors: [args: string[], error: string][]) =>
  Promise.all(
    errors.map(async ([args, error]) => {
      expect(await run(file, args)).toEqual({ args, code: 78, out: '', error: `${error}\n` })
    }),
  )

test('the command purse:sweep prints its usage for wrong arguments, and prints the reason if it sends no money', async () => {
  const usage = 'usage: bun run purse:sweep PROJECT ADDRESS, the address with its checksum'
  await runAll('sql/purse/sweepMain.ts', [
    [[], usage],
    [['prj_1'], usage],
    [['prj_1', `${ADDRESS.slice(0, -2)}CC`.replace('3c', '3C')], usage],
    [['prj_1', ADDRESS, 'more'], usage],
    [['', ADDRESS], usage],
    [['prj_1', ADDRESS], 'the project has no purse'],
  ])
})

test('the command purse:rotate prints its usage for wrong arguments, and refuses a project without a purse (wallet)', async () => {
  const usage = 'usage: bun run purse:rotate PROJECT'
  await runAll('sql/purse/rotateKeyMain.ts', [
    [[], usage],
    [[''], usage],
    [['prj_1', 'more'], usage],
    [['prj_1'], 'the project has no purse'],
  ])
})

test('the command keys:new refuses a wrong, reserved or used project name, and a platform key above the maximum number', async () => {
  await createProject(database.pool, {
    ...{ name: 'Taken', purpose: 'SELLER', emailAddress: 'taken@mail.test' },
    scopes: ['mail:read'],
  } as const)
  const form = '--project: must be the name of an inbox: letters, digits, ., _ and -'
  for (let n = 0; n < PLATFORM_KEYS_MAX; n++) await createPlatformKey(database.pool, 'key')
  await runAll('sql/account/keys/newKeyMain.ts', [
    [['--project', 'a b'], form],
    [['--project', '.dot'], form],
    [
      ['--project', 'Postmaster'],
      '--project: must be another name: postmaster@mail.test is kept for the operator',
    ],
    [['--project', 'Taken'], '--project: taken@mail.test is taken'],
    [
      ['--platform', 'more'],
      `an organization must have at most ${PLATFORM_KEYS_MAX} platform keys`,
    ],
  ])
})

test('the command keys:new tells a refusal of the database apart from a used project name', async () => {
  await database.pool.query(
    `alter table projects add constraint projects_broken check (name <> 'broken')`,
  )
  const { code, error } = await run('sql/account/keys/newKeyMain.ts', ['--project', 'broken'])
  expect([code, error]).toEqual([1, expect.stringMatching(/^no key was made: .*projects_broken/)])
})

test('the audit log of the organization records a project that the command keys:new creates', async () => {
  const { code, out } = await run('sql/account/keys/newKeyMain.ts', ['--project', 'recorded'])
  expect([code, out]).toEqual([0, expect.stringMatching(/^loid-[0-9a-f]{64}\n$/)])
  const { rows } = await database.pool.query(
    `select id from projects where email_address = 'recorded@mail.test'`,
  )
  const [entry] = await listAudit(database.pool, {
    projectId: ORGANIZATION,
    cursor: null,
    limit: 1,
  })
  expect(entry).toMatchObject({
    ...{ action: 'project.create', subject: rows[0].id, detail: 'recorded@mail.test' },
    ...{ keyPrefix: 'command line', outcome: 'ok' },
  })
})

test('a command refuses a database that lacks migrations', async () => {
  await using empty = await createTestDatabase('template0')
  const env = { DATABASE_URL: empty.url }
  const { code, error } = await run('sql/purse/rotateKeyMain.ts', ['prj_1'], env)
  expect([code, error]).toEqual([
    78,
    expect.stringMatching(/^the database lacks \d+ migrations: bun run migrate\n$/),
  ])
})
