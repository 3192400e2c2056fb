/** Tests that purchases of one project do not delay the purchases of another project. */
import { expect, test } from 'bun:test'
import { startPool } from '../../../workers/queue/pool.ts'
import { purseRunner } from '../../../workers/runners/purse.ts'
import { silentLog } from '../../support/logs.ts'
import { startBuyScene } from '../../support/purse/buyScene.ts'
import { waitFor } from '../../support/waitFor.ts'

const SLOTS = 20

test('a project that asks silent sellers for prices does not delay a purchase of another project', async () => {
  await using scene = await startBuyScene()
  let asked = 0
  const silent = Bun.serve({
    port: 0,
    hostname: '0.0.0.0',
    idleTimeout: 0,
    fetch: () => {
      asked++
      return new Promise<Response>(() => {})
    },
  })
  const pool = await startPool(
    {
      ...purseRunner({
        keyring: async () => scene.keyring,
        policy: { allowPrivate: true },
        deniedPayees: new Set(),
        dailyGas: null,
      }),
      databaseUrl: scene.databaseUrl,
      concurrency: SLOTS,
    },
    silentLog,
  )
  try {
    const greedy = await scene.newProject()
    for (let n = 1; n <= SLOTS * 3; n++) {
      const url = `http://127.0.0.${n}:${silent.port}/price`
      await scene.accept({ projectId: greedy, kind: 'quote', request: { url } })
    }
    await waitFor('the silent sellers to be asked', () => asked >= Math.floor(SLOTS / 3))
    const id = await scene.accept()
    await waitFor('the purchase of the other project', async () => {
      const { state } = await scene.purchase(id)
      return state === 'answered'
    })
    const { rows } = await scene.pool.query(
      `select from purchases where project_id = $1 and ended_at is not null`,
      [greedy],
    )
    expect(rows).toHaveLength(0)
    expect(asked).toBe(Math.floor(SLOTS / 3))
  } finally {
    await silent.stop(true)
    await pool.stop()
  }
})
