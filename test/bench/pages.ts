import { acceptIntents } from '../../sql/mail/outbound/acceptIntents.ts'
import { newIntent } from '../support/mail/mailRows.ts'
import { printed, startProcess } from '../support/process/process.ts'
import { beginCost, costText } from './cost.ts'
import { byTurns, type Row, rowOf } from './measure.ts'
import type { Setting } from './setting.ts'

const MESSAGES = 200
const REQUESTS = 3_000
/**
 * Sets the number of parallel requests for pages. It stays below the number of searches of one project that may wait at
 * the same time.
 */
const LANES = 16
const PAGES: readonly [name: string, path: string][] = [
  ['a page of 20 messages', '/v0/messages?limit=20'],
  [`a search in ${MESSAGES} messages`, '/v0/messages?limit=20&q=text'],
]

/** Measures the time that the API and the database need to read one page of a list. */
export async function* pageRows(setting: Setting): AsyncGenerator<Row> {
  const intents = Array.from({ length: MESSAGES }, () => newIntent(setting.project.id))
  await acceptIntents(setting.pool, intents, null)
  await using api = startProcess('api/main.ts', { ...setting.env, PORT: '0', LOG_LEVEL: 'info' })
  const url = `http://127.0.0.1:${(await printed(api, /"port":(\d+)/))[1]}`
  const headers = { authorization: `Bearer ${setting.key}` }
  for (const [name, path] of PAGES) {
    const [costs] = await byTurns([
      async () => {
        const measure = await beginCost(setting, 'api/main.ts')
        let next = 0
        await Promise.all(
          Array.from({ length: LANES }, async () => {
            while (next++ < REQUESTS) {
              const answer = await fetch(url + path, { headers })
              if (!answer.ok) throw new Error(await answer.text())
              await answer.arrayBuffer()
            }
          }),
        )
        return await measure(REQUESTS)
      },
    ])
    const rates = costs!.map(({ perSecond }) => perSecond)
    yield rowOf({ name, unit: '/s', detail: `the same; ${costText(costs!)}` }, rates, rates)
  }
}
