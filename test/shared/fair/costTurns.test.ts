/**
 * Tests which of several waiting tasks runs next. Each task belongs to one or more sharers (such as an inbox and a
 * network).
 */
import { expect, test } from 'bun:test'
import { Costs } from '../../../shared/fair/costs.ts'
import { CostTurns } from '../../../shared/fair/costTurns.ts'

/** Starts tasks that wait behind a first task, and returns the order in which they run. */
async function orderOf(costs: Costs, sharers: readonly (readonly string[])[]) {
  const turns = new CostTurns(costs, 1)
  const order: string[] = []
  const endFirst = await turns.enter(['first'])
  const tasks = sharers.map(async (names, n) => {
    const end = await turns.enter(names)
    order.push(`${names.join('+')} ${n}`)
    end()
  })
  endFirst()
  await Promise.all(tasks)
  return order
}

test('the waiting task whose sharers (inboxes, networks) have the least cost runs first, even if it came last', async () => {
  const costs = new Costs({ nowMs: () => 0 })
  costs.charge(['dear'], 500)
  costs.charge(['middling'], 50)
  expect(await orderOf(costs, [['dear'], ['cheap'], ['middling']])).toEqual([
    'cheap 1',
    'middling 2',
    'dear 0',
  ])
  expect(await orderOf(costs, [['middling'], ['dear'], ['cheap']])).toEqual([
    'cheap 2',
    'middling 0',
    'dear 1',
  ])
})

test('tasks of one sharer (such as an inbox) run in order of arrival; of two sharers with equal cost, the first runs all its tasks first', async () => {
  const costs = new Costs({ nowMs: () => 0 })
  expect(await orderOf(costs, [['a'], ['b'], ['a'], ['b']])).toEqual(['a 0', 'a 2', 'b 1', 'b 3'])
})

test('if a running task reports its end twice, only one waiting task starts', async () => {
  const turns = new CostTurns(new Costs({ nowMs: () => 0 }), 1)
  const end = await turns.enter(['first'])
  const started: string[] = []
  const tasks = ['a', 'b'].map(async (name) => {
    const endOfTask = await turns.enter([name])
    started.push(name)
    return endOfTask
  })
  end()
  end()
  const endOfFirst = await tasks[0]!
  await new Promise((resolve) => setImmediate(resolve))
  expect(started).toEqual(['a'])
  endOfFirst()
  await tasks[1]!
  expect(started).toEqual(['a', 'b'])
})

test('each position in a task’s list of sharers (such as inbox and network) has a separate limit on running tasks', async () => {
  const turns = new CostTurns(new Costs({ nowMs: () => 0 }), 10, { perSharer: [1, 2] })
  const started: string[] = []
  const ends: (() => void)[] = []
  const tasks = [
    ['a', 'net'],
    ['a', 'net'],
    ['b', 'net'],
    ['c', 'net'],
    ['d', 'other'],
  ].map(async (sharers) => {
    ends.push(await turns.enter(sharers))
    started.push(sharers[0]!)
  })
  await new Promise((resolve) => setImmediate(resolve))
  expect(started).toEqual(['a', 'b', 'd'])
  ends[0]!()
  await new Promise((resolve) => setImmediate(resolve))
  expect(started).toEqual(['a', 'b', 'd', 'a'])
  ends[1]!()
  await Promise.all(tasks)
  expect(started).toEqual(['a', 'b', 'd', 'a', 'c'])
})

test('if the signal of a waiting task aborts, this task never runs, and the other waiting tasks still run', async () => {
  const turns = new CostTurns(new Costs({ nowMs: () => 0 }), 1)
  const end = await turns.enter(['first'])
  const stop = new AbortController()
  const left = turns.enter(['a'], stop.signal)
  const kept = turns.enter(['a'])
  stop.abort(new Error('too late'))
  await expect(left).rejects.toThrow('too late')
  await expect(turns.enter(['a'], stop.signal)).rejects.toThrow('too late')
  end()
  expect(await kept).toBeFunction()
})

test('if the signal of a task aborts after the task has started, no waiting task is removed', async () => {
  const turns = new CostTurns(new Costs({ nowMs: () => 0 }), 1)
  const endFirst = await turns.enter(['first'])
  const stop = new AbortController()
  const own = turns.enter(['a'], stop.signal)
  const other = turns.enter(['a'])
  endFirst()
  stop.abort(new Error('too late'))
  const end = await own
  end()
  expect(await other).toBeFunction()
})

/**
 * Lets tasks compete for two places in the waiting queue while a first task runs.
 * @returns the tasks that ran, in their order, and the tasks that were refused.
 */
async function inPlaces(costs: Costs, names: readonly string[]) {
  const turns = new CostTurns(costs, 1, { placesMax: 2 })
  const ran: string[] = []
  const sentAway: string[] = []
  const endFirst = await turns.enter(['first'])
  const tasks = names.map(async (name) => {
    const hadTurn = await turns.runInPlace([name], async () => void ran.push(name))
    if (!hadTurn) sentAway.push(name)
  })
  endFirst()
  await Promise.all(tasks)
  return { ran, sentAway }
}

test('if the waiting queue is full, a new cheaper task replaces the waiting task with the highest cost', async () => {
  const costs = new Costs({ nowMs: () => 0 })
  costs.charge(['dear'], 500)
  costs.charge(['middling'], 50)
  expect(await inPlaces(costs, ['middling', 'dear', 'cheap'])).toEqual({
    ran: ['cheap', 'middling'],
    sentAway: ['dear'],
  })
})

test('if the waiting queue is full and the new task costs at least as much as each waiting task, the new task is refused', async () => {
  const costs = new Costs({ nowMs: () => 0 })
  for (const name of ['a', 'b', 'c']) costs.charge([name], 50)
  expect(await inPlaces(costs, ['a', 'b', 'c', 'a'])).toEqual({
    ran: ['a', 'b'],
    sentAway: ['c', 'a'],
  })
})

test('if a task may wait without a place in the waiting queue, it is not refused although the queue is full, and replaces no waiting task', async () => {
  const costs = new Costs({ nowMs: () => 0 })
  costs.charge(['dear'], 500)
  const turns = new CostTurns(costs, 1, { placesMax: 1 })
  const endFirst = await turns.enter(['first'])
  const ran: string[] = []
  const note = (name: string) => async () => void ran.push(name)
  const tasks = [
    turns.run(['dear'], note('dear')),
    turns.runInPlace(['a'], note('a')),
    turns.runInPlace(['b'], note('b')),
  ]
  endFirst()
  expect(await Promise.all(tasks)).toEqual([undefined, true, false])
  expect(ran).toEqual(['a', 'dear'])
})
