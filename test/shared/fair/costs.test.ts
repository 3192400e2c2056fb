import { expect, test } from 'bun:test'
import { Costs, mayShare } from '../../../shared/fair/costs.ts'
import { CostTurns } from '../../../shared/fair/costTurns.ts'

test('the cost of an inbox or network decreases with time, and the cost of a task is the sum over its inboxes and networks', () => {
  let nowMs = 0
  const costs = new Costs({ nowMs: () => nowMs })
  costs.charge(['inbox', 'network'], 400)
  expect([costs.of(['inbox']), costs.of(['inbox', 'network']), costs.of(['other'])]).toEqual([
    400, 800, 0,
  ])
  expect([costs.priorityOf(['inbox', 'network']), costs.priorityOf(['other'])]).toEqual([3, 0])
  nowMs = 60_000
  expect(costs.of(['inbox'])).toBe(100)
})

test('the cost of an inbox or network is halved every 30 seconds, even after hours', () => {
  let nowMs = 0
  const costs = new Costs({ nowMs: () => nowMs })
  costs.charge(['inbox'], 2 ** 100)
  for (let half = 1; half <= 2_000; half++) {
    nowMs = half * 30_000
    expect(costs.of(['inbox'])).toBeCloseTo(half <= 150 ? 2 ** (100 - half) : 0, 9)
  }
  costs.charge(['inbox'], 400)
  expect(costs.of(['inbox'])).toBe(400)
})

test('two jobs share a batch if the dearer job costs at most twice as much as the cheaper job plus a tenth of a second', () => {
  expect([mayShare(100, 300), mayShare(100, 301), mayShare(0, 100)]).toEqual([true, false, true])
})

test('the inbox or network with the highest cost stays in memory, even if 1,000 others follow and only 100 fit into memory', () => {
  const costs = new Costs({ sharersMax: 100, nowMs: () => 0 })
  costs.charge(['heavy'], 1_000)
  for (let n = 0; n < 1_000; n++) costs.charge([`light ${n}`], 1)
  expect(costs.size).toBeLessThanOrEqual(100)
  expect(costs.of(['heavy'])).toBe(1_000)
})

test('of the waiting tasks, the task of the inbox or network with the lowest cost runs first, even if others came earlier', async () => {
  const costs = new Costs({ nowMs: () => 0 })
  const turns = new CostTurns(costs, 1)
  const order: string[] = []
  const take = async (...sharers: string[]) => {
    const end = await turns.enter(sharers)
    order.push(sharers[0]!)
    costs.charge(sharers, 50)
    await null
    end()
  }
  costs.charge(['light', 'far'], 1)
  const works = Array.from({ length: 20 }, () => take('heavy', 'near'))
  const wide = Array.from({ length: 20 }, (_, n) => take(`wide ${n}`, 'near'))
  await Promise.all([...works, ...wide, take('light', 'far')])
  expect(order.indexOf('light')).toBe(1)
  expect(order.length).toBe(41)
})

test('if a task throws an error, the next task can run, and the CPU time is still charged to the inbox or network of the failed task', async () => {
  const costs = new Costs()
  const turns = new CostTurns(costs, 1)
  const slow = async () => {
    await Bun.sleep(5)
    throw new Error('broken')
  }
  await expect(turns.run(['a'], slow)).rejects.toThrow('broken')
  expect(costs.of(['a'])).toBeGreaterThan(1)
  expect(await turns.run(['a'], async () => 'next')).toBe('next')
})
