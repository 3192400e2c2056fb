/** Tests the worker's part of a company sign-in with identity providers that hang or that sign with a wrong key. */
import { expect, test } from 'bun:test'
import type { Server } from 'bun'
import { exportJWK, generateKeyPair, SignJWT } from 'jose'
import type { Pool } from '../../../sql/db.ts'
import { createSignInCompany } from '../../../workers/account/signInCompany.ts'
import { createHeldOutcomes } from '../../../workers/queue/heldOutcomes.ts'
import { Lanes } from '../../../workers/queue/lanes.ts'
import { createTestDatabase } from '../../support/database/database.ts'
import { silentLog } from '../../support/logs.ts'
import { waitFor } from '../../support/waitFor.ts'

/**
 * Sets the number of job slots in the worker pool, and how many of these slots the requests for one receiver may use.
 */
const SLOTS = 200
const LANE_CAP = 32

/** Starts an identity provider that never responds to requests for `hangs`. */
function startHangingProvider(hangs: 'discovery' | 'token') {
  const waiting: ((response: Response) => void)[] = []
  const hang = () => new Promise<Response>((resolve) => waiting.push(resolve))
  const server: Server<undefined> = Bun.serve({
    port: 0,
    hostname: '127.0.0.1',
    fetch: ({ url }): Response | Promise<Response> => {
      const isToken = url.endsWith('/token')
      if (isToken === (hangs === 'token')) return hang()
      return Response.json({
        issuer,
        authorization_endpoint: `${issuer}/authorize`,
        token_endpoint: `${issuer}/token`,
      })
    },
  })
  const issuer = `http://127.0.0.1:${server.port}`
  const close = async () => {
    for (const resolve of waiting) resolve(new Response(null, { status: 500 }))
    await server.stop(true)
  }
  return { issuer, close }
}

/**
 * Stores company sign-ins of strangers in the given state. Each sign-in has an answer that a stranger sent. @returns
 * their ids
 */
async function storeSignIns(
  pool: Pool,
  state: 'asked' | 'answered',
  count: number,
  network = '203.0.113.1',
) {
  const { rows } = await pool.query<{ id: string }>(
    `insert into company_sign_ins (id, browser_hash, state, nonce, verifier, answer, expires_at, network)
     select id, sha256(id::bytea), $1, 'nonce', 'verifier', 'code=junk&state=' || id, now() + interval '9 minutes', $3
     from (select 'csi_' || substr(md5($3 || n), 1, 24) as id from generate_series(1, $2::int) n) made
     returning id`,
    [state, count, network],
  )
  return rows.map(({ id }) => id)
}

test.each([
  ['the first step', 'asked', 'discovery'],
  ['the exchange of the code', 'answered', 'token'],
] as const)(
  'while the identity provider hangs in %s, 100 sign-ins hold at most 32 slots, and the others are tried later',
  async (_, state, hangs) => {
    await using database = await createTestDatabase()
    const { pool } = database
    const provider = startHangingProvider(hangs)
    const lanes = new Lanes(SLOTS)
    const run = createSignInCompany(
      { pool, log: silentLog, lanes, outcomes: createHeldOutcomes(silentLog) },
      {
        company: { issuer: provider.issuer, clientId: 'purser', clientSecret: null },
        baseUrl: 'https://purser.example',
      },
    )
    const ids = await storeSignIns(pool, state, 100)
    let running = ids.length
    const runs = ids.map(async (signInId) => {
      await run({ signInId }, { attempt: 1 })
      running--
    })
    try {
      await waitFor('68 runs to end', () => running <= LANE_CAP)
      const { rowCount } = await pool.query(
        `select from graphile_worker.jobs where key like 'sign_in_company:%'`,
      )
      expect(rowCount).toBeGreaterThanOrEqual(ids.length - LANE_CAP)
      expect((await lanes.enter('a webhook', 'a project')).granted).toBe(true)
    } finally {
      await provider.close()
      await Promise.all(runs)
    }
  },
)

test('the sign-ins of each network wait in a separate queue for a slow identity provider', async () => {
  await using database = await createTestDatabase()
  const { pool } = database
  const entered: unknown[] = []
  const enter = async (...lane: unknown[]) => {
    entered.push(lane)
    return { granted: false, returnInMs: 60_000 }
  }
  const run = createSignInCompany({ pool, lanes: { enter } } as never, {
    company: null,
    baseUrl: 'https://purser.example',
  })
  for (const [state, network] of [
    ['asked', '203.0.113.1'],
    ['answered', '2001:db8:1::/48'],
  ] as const) {
    const [signInId] = await storeSignIns(pool, state, 1, network)
    await run({ signInId: signInId! }, { attempt: 1 })
  }
  const { rows } = await pool.query(`update company_sign_ins set state = 'failed' returning id`)
  for (const signInId of [rows[0].id, 'none']) await run({ signInId }, { attempt: 1 })
  expect(entered).toEqual([
    ['company sign-in:asked', 'company sign-ins of 203.0.113.1'],
    ['company sign-in:answered', 'company sign-ins of 2001:db8:1::/48'],
  ])
})

/** Starts an identity provider that publishes one key, and that signs ID tokens with this key or with another key. */
async function startSigningProvider(signsWith: 'its key' | 'another key') {
  const [published, other] = [await generateKeyPair('RS256'), await generateKeyPair('RS256')]
  const key = signsWith === 'its key' ? published.privateKey : other.privateKey
  const jwk = { ...(await exportJWK(published.publicKey)), kid: 'k1', alg: 'RS256', use: 'sig' }
  const idToken = () =>
    new SignJWT({ nonce: 'nonce' })
      .setProtectedHeader({ alg: 'RS256', kid: 'k1' })
      .setIssuer(issuer)
      .setSubject('ada')
      .setAudience('purser')
      .setIssuedAt()
      .setExpirationTime('5m')
      .sign(key)
  const server: Server<undefined> = Bun.serve({
    port: 0,
    hostname: '127.0.0.1',
    routes: {
      '/.well-known/openid-configuration': () =>
        Response.json({
          issuer,
          authorization_endpoint: `${issuer}/authorize`,
          token_endpoint: `${issuer}/token`,
          jwks_uri: `${issuer}/jwks`,
        }),
      '/jwks': Response.json({ keys: [jwk] }),
      '/token': async () =>
        Response.json({ access_token: 'a', token_type: 'Bearer', id_token: await idToken() }),
    },
  })
  const issuer = `http://127.0.0.1:${server.port}`
  return { issuer, [Symbol.asyncDispose]: () => server.stop(true) }
}

test.each([
  ['its key', { state: 'done', subject: 'ada' }],
  ['another key', { state: 'failed', subject: null }],
] as const)(
  'if the identity provider signs the ID token with %s, the sign-in ends as %o',
  async (key, end) => {
    await using database = await createTestDatabase()
    const { pool } = database
    await using provider = await startSigningProvider(key)
    const run = createSignInCompany(
      { pool, log: silentLog, lanes: new Lanes(SLOTS), outcomes: createHeldOutcomes(silentLog) },
      {
        company: { issuer: provider.issuer, clientId: 'purser', clientSecret: null },
        baseUrl: 'https://purser.example',
      },
    )
    const [signInId] = await storeSignIns(pool, 'answered', 1)
    await run({ signInId: signInId! }, { attempt: 1 })
    const { rows } = await pool.query(
      'select state, subject, fault from company_sign_ins where id = $1',
      [signInId],
    )
    expect(rows[0]).toMatchObject(end)
  },
)
