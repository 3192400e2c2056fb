import { freePort, printed, startProcess } from '../support/process/process.ts'
import { compare, perSecond, type Row } from './measure.ts'
import type { Setting } from './setting.ts'

const LANES = 32
const DURATION_MS = 2_000
/** Sets the number of vault names that the benchmark writes and reads, one after another. */
const NAMES = 64

/**
 * Compares the vault with a bare Elysia route that runs the same statements and writes the same audit entry, but uses
 * no cryptography.
 */
export async function vaultRows(setting: Setting): Promise<Row[]> {
  const [port, barePort] = [await freePort(), await freePort()]
  await using api = startProcess('api/main.ts', {
    ...setting.env,
    LOG_LEVEL: 'info',
    PORT: String(port),
  })
  await using bare = startProcess('test/bench/bareServer.ts', {
    ...setting.env,
    PORT: String(barePort),
  })
  await printed(api, /"msg":"ready"/)
  await printed(bare, /ready/)

  const body = JSON.stringify({
    type: 'LOGIN',
    data: { username: 'ada', password: 'x'.repeat(200) },
    metadata: { uri: 'https://example.com', username: 'ada' },
  })
  const call = (target: number, prefix: string, method: string) => async (n: number) => {
    const response = await fetch(`http://127.0.0.1:${target}/${prefix}name-${n % NAMES}`, {
      method,
      headers: { authorization: `Bearer ${setting.key}`, 'content-type': 'application/json' },
      ...(method === 'PUT' ? { body } : {}),
    })
    const answer = (await response.json()) as any
    if (!response.ok) throw new Error(JSON.stringify(answer))
  }
  const measure = (work: (n: number) => Promise<unknown>) => () =>
    perSecond({ lanes: LANES, durationMs: DURATION_MS, work })
  const detail = `bare Elysia route with the same SQL and no cryptography, ${LANES} connections`
  const row = (name: string, method: string) =>
    compare({
      name,
      unit: 'requests/s',
      detail,
      ours: measure(call(port, 'v0/vault/', method)),
      baseline: measure(call(barePort, 'vault/bare-', method)),
    })
  return [await row('vault put', 'PUT'), await row('vault get', 'GET')]
}
