/**
 * Runs the baseline server of the benchmark: Elysia with the same queries and the same JSON, but without API keys,
 * limits, validation, cryptography or logs.
 */
import { Elysia } from 'elysia'
import { toItem, toWhole } from '../../api/mail/messages/messageDocs.ts'
import { toOpen, toStored } from '../../api/vault/vaultDocs.ts'
import type { Keyring } from '../../shared/vault/envelope.ts'
import { createPool } from '../../sql/db.ts'
import { findMessage, listMessages } from '../../sql/mail/messages/messages.ts'
import { openCredential } from '../../sql/vault/credentialReads.ts'
import { type CredentialContent, storeCredential } from '../../sql/vault/credentials.ts'

const pool = createPool({
  url: process.env.DATABASE_URL!,
  size: 16,
  name: 'bench',
})
const projectId = process.env.BENCH_PROJECT!
const actor = { projectId, keyPrefix: 'loid-bench', requestId: 'bench' }

/** Replaces the encryption of the vault by functions that return the data unchanged. */
const keyring = {
  seal: (plaintext: Buffer) => ({
    keyId: 'none',
    wrappedKey: Buffer.alloc(61),
    ciphertext: plaintext,
  }),
  open: ({ ciphertext }: { ciphertext: Buffer }) => ciphertext,
} as unknown as Keyring

const app = new Elysia()
  .get('/list', async () => {
    const { messages } = await listMessages(pool, {
      projectId,
      labels: [],
      after: null,
      before: null,
      cursor: null,
      limit: 20,
    })
    return {
      messages: messages.map((message) => toItem(message, 'standard')),
      count: messages.length,
    }
  })
  .put('/vault/:name', async ({ params, body }) => {
    const content = {
      expiresAt: null,
      allowedHosts: null,
      ...(body as object),
    } as CredentialContent
    const target = { actor, keyring, name: params.name, content, isOwner: false }
    const stored = await storeCredential(pool, target)
    if (stored === null || stored === 'withheld') throw new Error('not stored')
    return toStored(stored)
  })
  .get('/vault/:name', async ({ params }) => {
    const target = {
      ...{ actor, keyring, name: params.name, isOwner: false },
      action: 'vault.get',
    } as const
    const opened = await openCredential(pool, target)
    if (opened.kind !== 'ok') throw new Error(opened.kind)
    return toOpen(opened.credential)
  })
  .get('/get/:id', async ({ params }) =>
    toWhole((await findMessage(pool, projectId, params.id))!, 'standard'),
  )
  .listen({ port: Number(process.env.PORT), hostname: '127.0.0.1' })

process.on('SIGTERM', async () => {
  await app.stop(true)
  await pool.end()
  process.exit(0)
})
process.stdout.write('"msg":"ready"\n')
