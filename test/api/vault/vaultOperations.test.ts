import { afterAll, beforeAll, expect, test } from 'bun:test'
import { ApiError } from '../../../api/http/errors.ts'
import type { Caller } from '../../../api/http/requestState.ts'
import {
  currentTotp,
  deleteCredential,
  listCredentials,
  listVersions,
  readCredential,
  readVersion,
  restoreVersion,
  storeCredential,
  takeBackupCode,
} from '../../../api/vault/vault.ts'
import { createBatcher } from '../../../shared/process/batcher.ts'
import { createKeyringSource, masterKeys } from '../../../sql/keyring/keyring.ts'
import { type CredentialRead, readCredentials } from '../../../sql/vault/credentialReads.ts'
import { startTestService, type TestService } from '../../support/service.ts'

let service: TestService
beforeAll(async () => {
  service = await startTestService({ smtp: false, workers: false })
})
afterAll(() => service[Symbol.asyncDispose]())

async function setUp(...scopes: string[]) {
  const { project, key } = await service.newAgent()
  const caller: Caller = {
    projectId: project.id,
    keyPrefix: key.slice(0, 17),
    requestId: 'req_of_a_face',
    scopes,
    isOwner: false,
    holdsMail: false,
  }
  const keyring = createKeyringSource(masterKeys(service.config))
  const { pool } = service.database
  const credentials = createBatcher({
    batchMax: 10,
    parallel: 1,
    run: (reads: CredentialRead[]) => readCredentials(pool, 'vault.get', reads),
  })
  return { vault: { pool, keyring, credentials, config: service.config }, caller }
}

/** Returns the status and the message of the error with which a vault operation fails. */
async function refusal(call: Promise<unknown>): Promise<[number, string]> {
  try {
    await call
  } catch (error) {
    expect(error).toBeInstanceOf(ApiError)
    const { status, message } = error as ApiError
    return [status, message]
  }
  throw new Error('it was not refused')
}

test('calls of the vault functions inside the program give the same results as the API', async () => {
  const { vault, caller } = await setUp('vault:read', 'vault:write')
  const data = { password: 'p', totp: 'JBSWY3DPEHPK3PXP', backupCodes: ['a'] }
  expect(await storeCredential(vault, caller, 'n', { type: 'LOGIN', data })).toMatchObject({
    name: 'n',
    version: 1,
  })
  expect(await readCredential(vault, caller, 'n')).toMatchObject({ data: { password: 'p' } })
  expect((await currentTotp(vault, caller, 'n')).code).toMatch(/^\d{6}$/)
  expect(await takeBackupCode(vault, caller, 'n')).toEqual({ code: 'a', remaining: 0 })
  expect((await listCredentials(vault, caller)).count).toBe(1)
  expect((await listVersions(vault, caller, 'n')).count).toBe(1)
  expect((await readVersion(vault, caller, 'n', 1)).current).toBe(true)
  expect((await restoreVersion(vault, caller, 'n', 1)).version).toBe(2)
  await deleteCredential(vault, caller, 'n')
  const { rows } = await service.database.pool.query(
    `select distinct actor, request_id from audit_log where project_id = $1`,
    [caller.projectId],
  )
  expect(rows).toEqual([{ actor: caller.keyPrefix, request_id: 'req_of_a_face' }])
})

test('the program’s internal vault functions check scopes, names and content themselves, as the API does', async () => {
  const none = await setUp()
  const read = (call: (vault: any, caller: Caller, ...rest: any[]) => Promise<unknown>) =>
    refusal(call(none.vault, none.caller, 'n', 1))
  for (const call of [readCredential, currentTotp, listVersions, readVersion]) {
    expect(await read(call)).toEqual([403, 'Missing required scope: vault:read'])
  }
  expect(await refusal(listCredentials(none.vault, none.caller))).toEqual([
    403,
    'Missing required scope: vault:read',
  ])
  for (const call of [storeCredential, takeBackupCode, deleteCredential, restoreVersion]) {
    expect(await read(call)).toEqual([403, 'Missing required scope: vault:write'])
  }
  const { vault, caller } = await setUp('vault:read', 'vault:write')
  const body = { type: 'CUSTOM', data: { a: 1 } }
  for (const name of ['', '\0', 'a\ud800']) {
    expect((await refusal(storeCredential(vault, caller, name, body)))[1]).toStartWith('name must ')
    expect((await refusal(readCredential(vault, caller, name)))[1]).toStartWith('name must ')
  }
  // A JSON string can contain U+0000, but a PostgreSQL text value cannot.
  const metadata = { note: 'half \ud800, null \0' }
  await storeCredential(vault, caller, 'odd', { ...body, data: metadata, metadata })
  expect(await readCredential(vault, caller, 'odd')).toMatchObject({ data: metadata, metadata })
  const allowedHosts = Array.from({ length: 21 }, (_, n) => `h${n}.example.com`)
  expect(await refusal(storeCredential(vault, caller, 'many', { ...body, allowedHosts }))).toEqual([
    400,
    'allowedHosts must hold at most 20 entries',
  ])
})

test('if a project is deleted after the check of the API key, no credential can be stored in it', async () => {
  const { vault, caller } = await setUp('vault:write')
  await service.database.pool.query('update projects set deleted_at = now() where id = $1', [
    caller.projectId,
  ])
  const late = storeCredential(vault, caller, 'late', { type: 'CUSTOM', data: { a: 1 } })
  expect(await refusal(late)).toEqual([401, 'Invalid API key'])
})
