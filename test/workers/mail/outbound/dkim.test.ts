import { afterAll, beforeAll, expect, test } from 'bun:test'
import { dkimVerify } from 'mailauth/lib/dkim/verify.js'
import { Keyring, masterKey } from '../../../../shared/vault/envelope.ts'
import { createKeyringSource, keysInUse, masterKeys } from '../../../../sql/keyring/keyring.ts'
import { rotateMasterKey } from '../../../../sql/keyring/rotation.ts'
import { createDkimKey } from '../../../../sql/mail/domains/dkimKeys.ts'
import { sendMail, sunkAt } from '../../../support/mail/outbound.ts'
import { type Sink, startSink } from '../../../support/mail/sink.ts'
import { startProcess } from '../../../support/process/process.ts'
import { startTestService, type TestService } from '../../../support/service.ts'
import '../../../support/long.ts'

let sink: Sink
let service: TestService
beforeAll(async () => {
  sink = await startSink()
  service = await startTestService({ smtp: false, env: { SMTP_RELAY_URL: sink.url } })
})
afterAll(async () => {
  await service[Symbol.asyncDispose]()
  await sink[Symbol.asyncDispose]()
})

const verify = async (raw: string, records: Map<string, string>) => {
  const { results } = await dkimVerify(Buffer.from(raw, 'latin1'), {
    resolver: async (name: string) => {
      const record = records.get(name)
      if (record !== undefined) return [record.match(/.{1,255}/g)!]
      throw Object.assign(new Error('none'), { code: 'ENOTFOUND' })
    },
  } as any)
  return results.map(({ status, signingDomain }: any) => [status.result, signingDomain])
}

/** Runs the command `bun run dkim:new`. @returns the exit code and the output of the command. */
async function dkimNew(...args: string[]) {
  await using command = startProcess(
    'sql/mail/domains/dkimMain.ts',
    { DATABASE_URL: service.database.url, DATA_DIR: service.config.dataDir },
    args,
  )
  const code = await command.exited
  return { code, stdout: command.stdout(), stderr: command.stderr() }
}

/** Parses a line of a zone file. */
function published(line: string): [name: string, record: string] {
  const [, name = '', strings = ''] = /^(\S+)\. IN TXT (.*)\n$/.exec(line) ?? []
  return [name, [...strings.matchAll(/"([^"]*)"/g)].map(([, text]) => text).join('')]
}

test('without a DKIM key mail is unsigned; after the command dkim:new mail is signed, and the printed DNS record verifies the signature', async () => {
  const agent = await service.newAgent()
  const plain = await sendMail(agent)
  expect((await sunkAt(sink, plain.messageId)).raw).not.toContain('DKIM-Signature')
  const records = new Map<string, string>()
  const first = await dkimNew('mail.test')
  expect([first.code, first.stderr]).toEqual([0, expect.stringContaining('from now on')])
  records.set(...published(first.stdout))
  const [name] = records.keys()
  expect(name).toMatch(/^p\d{8}[0-9a-f]{4}\._domainkey\.mail\.test$/)
  const signed = await sendMail(agent, {
    subject: 'Grüße ✓',
    text: 'Zeile 1  \nZeile 2\n\n\n',
    html: '<p>x</p>',
    attachments: [
      { filename: 'a', contentType: 'a/b', content: Buffer.alloc(5_000).toString('base64') },
    ],
  })
  const { raw } = await sunkAt(sink, signed.messageId)
  expect(await verify(raw, records)).toEqual([['pass', 'mail.test']])
  expect(await verify(raw.replace('AAAA', 'BBBB'), records)).not.toEqual([['pass', 'mail.test']])
  // The mail is also signed with the second DKIM key, so either of the two DNS records is enough to verify it.
  const second = await dkimNew('Mail.Test.')
  expect(second.stderr).toContain(name!.split('.')[0]!)
  const both = await sunkAt(sink, (await sendMail(agent)).messageId)
  const newer = new Map([published(second.stdout)])
  for (const zone of [records, newer]) {
    expect((await verify(both.raw, zone)).map(([result]: any) => result).toSorted()).toEqual([
      'neutral',
      'pass',
    ])
  }
})

test('the command dkim:new refuses invalid arguments and prints its usage', async () => {
  for (const args of [[], ['-x'], ['a b'], ['a.test', 'b.test'], ['ada@mail.test']]) {
    const { code, stderr, stdout } = await dkimNew(...args)
    expect([args, code, stderr, stdout]).toEqual([
      args,
      78,
      'usage: bun run dkim:new DOMAIN, such as mail.example.com\n',
      '',
    ])
  }
})

test('the private DKIM key is stored encrypted, and a rotation of the master key encrypts the DKIM key with the new master key', async () => {
  const { pool } = service.database
  const keys = masterKeys(service.config)
  const keyring = await createKeyringSource(keys)(pool)
  const { selector } = await createDkimKey(pool, keyring, 'other.test')
  const { rows } = await pool.query('select * from dkim_keys where selector = $1', [selector])
  expect(JSON.stringify(rows[0])).not.toMatch(/PRIVATE/)
  expect(rows[0].ciphertext.includes(Buffer.from('2a864886f70d010101', 'hex'))).toBe(false)
  const next = masterKey('next', Buffer.alloc(32, 7))
  await pool.query('insert into master_keys (id, check_value) values ($1, $2)', [
    'next',
    Buffer.alloc(32),
  ])
  await rotateMasterKey(pool, new Keyring([next, ...keys]), () => {})
  expect(await keysInUse(pool)).toEqual(['next'])
  await rotateMasterKey(pool, new Keyring([...keys, next]), () => {})
  expect(await keysInUse(pool)).toEqual([keys[0]!.id])
  await pool.query(`delete from master_keys where id = 'next'`)
})
