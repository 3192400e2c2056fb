import { expect, test } from 'bun:test'
import { FairTurns, NoTurnError } from '../../../shared/fair/fairTurns.ts'

/**
 * Makes a waiting request for each listed owner at the same time. Only one request may run at a time.
 * @returns the owners in the order in which they could run
 */
async function orderOf(turns: FairTurns, owners: readonly string[]): Promise<string[]> {
  const order: string[] = []
  await Promise.all(
    owners.map(async (owner) => {
      const leave = await turns.enter(owner)
      order.push(owner)
      await null
      leave()
    }),
  )
  return order
}

test('if requests of several inboxes or projects wait to run, the inboxes or projects run in rotation', async () => {
  const turns = new FairTurns({ total: 1, perSharer: 1 })
  expect((await orderOf(turns, ['a', 'a', 'a', 'a', 'b', 'c', 'b'])).join('')).toBe('aabcaba')
})

test('if an inbox or project already has its maximum number of running requests, a request of another inbox or project runs next', async () => {
  const turns = new FairTurns({ total: 3, perSharer: 2 })
  await turns.enter('a')
  const leave = await turns.enter('a')
  let third = false
  const waiting = turns.enter('a').then(() => {
    third = true
  })
  await turns.enter('b')
  expect(third).toBe(false)
  leave()
  leave()
  await waiting
})

test('if too many callers of one project wait, its next caller is refused, but a caller of another project may still wait', async () => {
  const turns = new FairTurns({ total: 1, perSharer: 1, waitingPerSharer: 1 })
  const leave = await turns.enter('a')
  const [second, other] = [turns.enter('a'), turns.enter('b')]
  await expect(turns.enter('a')).rejects.toBeInstanceOf(NoTurnError)
  leave()
  ;(await second)()
  ;(await other)()
})

test('a request that waits too long for its turn is refused, and does not run later', async () => {
  const turns = new FairTurns({ total: 1, perSharer: 1 })
  const leave = await turns.enter('a')
  await expect(turns.enter('b', 1)).rejects.toBeInstanceOf(NoTurnError)
  await turns.enter('b', 1).catch(() => {})
  leave()
  ;(await turns.enter('b', 1))()
})
