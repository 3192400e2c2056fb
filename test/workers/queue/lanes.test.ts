import { describe, expect, test } from 'bun:test'
import { CHECK_LIMITS, Lanes, MAIL_LIMITS, type Turn } from '../../../workers/queue/lanes.ts'

const FAST_CAP = 32
const SLOW_CAP = 4

const granted = (turns: Turn[]) => turns.filter((turn) => turn.granted)
const leave = (turn: Turn) => {
  if (turn.granted) turn.leave()
}

/** Makes a lane (the queue of one destination) slow, because one request of the lane takes 600 ms. */
async function makeSlow(lanes: Lanes, lane: string, owner: string): Promise<void> {
  const turn = await lanes.enter(lane, owner)
  clockMs += 600
  leave(turn)
}

let clockMs = 0
const createLanes = (slots: number) => new Lanes(slots, undefined, () => clockMs)

describe('lanes (queues of one destination) limit how many requests each destination gets at the same time', () => {
  test('a lane (the queue of one destination) gets slots up to its limit, and one more slot whenever a request ends', async () => {
    const lanes = createLanes(200)
    const first = await Promise.all(Array.from({ length: FAST_CAP }, () => lanes.enter('a', 'p')))
    expect(granted(first)).toHaveLength(FAST_CAP)
    let entered = 0
    const rest = Array.from({ length: FAST_CAP }, async () => {
      const turn = await lanes.enter('a', 'p')
      entered++
      return turn
    })
    await Promise.resolve()
    expect(entered).toBe(0)
    expect((await lanes.enter('b', 'p')).granted).toBe(true)
    for (const turn of first) leave(turn)
    const second = await Promise.all(rest)
    expect(granted(second)).toHaveLength(FAST_CAP)
    expect(second.every((turn) => turn.granted && turn.waited)).toBe(true)
  })

  test('if the end of one request is reported twice, a lane (the queue of one destination) frees only one slot', async () => {
    const lanes = createLanes(200)
    const turns = await Promise.all(Array.from({ length: FAST_CAP }, () => lanes.enter('a', 'p')))
    leave(turns[0]!)
    leave(turns[0]!)
    expect((await lanes.enter('a', 'p')).granted).toBe(true)
    expect((await lanes.enter('a', 'p')).granted).toBe(false)
  })

  test('a request whose wait has ended leaves the lane (the queue of one destination), and the next request gets the free slot', async () => {
    const lanes = createLanes(200)
    const turns = await Promise.all(Array.from({ length: FAST_CAP }, () => lanes.enter('a', 'p')))
    const first = lanes.enter('a', 'p')
    const later = first.then(() => lanes.enter('a', 'p'))
    const others = Array.from({ length: 3 }, () => lanes.enter('a', 'p'))
    expect((await first).granted).toBe(false)
    expect(granted(await Promise.all(others))).toHaveLength(0)
    await Promise.resolve()
    leave(turns[0]!)
    expect((await later).granted).toBe(true)
  })

  test('a lane (the queue of one destination) refuses requests without a free slot, and gives them retry times at intervals of 5 ms', async () => {
    const lanes = createLanes(200)
    await Promise.all(Array.from({ length: FAST_CAP }, () => lanes.enter('a', 'p')))
    const refused = await Promise.all(Array.from({ length: 100 }, () => lanes.enter('a', 'p')))
    expect(granted(refused)).toHaveLength(0)
    const returns = refused
      .map((turn) => (turn.granted ? 0 : turn.returnInMs))
      .toSorted((a, b) => a - b)
    expect(returns).toEqual(Array.from({ length: 100 }, (_, n) => 250 + n * 5))
  })

  test('a slow lane (the queue of one destination) gets four slots, and refuses all requests above this number', async () => {
    const lanes = createLanes(200)
    await makeSlow(lanes, 'a', 'p')
    const turns = await Promise.all(Array.from({ length: 10 }, () => lanes.enter('a', 'p')))
    expect(granted(turns)).toHaveLength(SLOW_CAP)
    expect((await lanes.enter('b', 'p')).granted).toBe(true)
  })

  test('while its requests get no response, a lane (the queue of one destination) counts as slow', async () => {
    const lanes = createLanes(200)
    await Promise.all(Array.from({ length: SLOW_CAP }, () => lanes.enter('a', 'p')))
    clockMs += 600
    expect((await lanes.enter('a', 'p')).granted).toBe(false)
  })

  test('all slow lanes (queues of one destination) of one project together have a limit, and the slow lanes of all projects get half of the slots', async () => {
    const lanes = createLanes(40)
    const names = Array.from({ length: 20 }, (_, n) => `lane${n}`)
    for (const [n, name] of names.entries()) await makeSlow(lanes, name, n < 10 ? 'p' : `q${n}`)
    const turnsOf = async (some: string[], owner: (n: number) => string) => {
      const turns = await Promise.all(
        some.flatMap((name, n) => Array.from({ length: 9 }, () => lanes.enter(name, owner(n)))),
      )
      return granted(turns).length
    }
    expect(await turnsOf(names.slice(0, 10), () => 'p')).toBe(16)
    expect(await turnsOf(names.slice(10), (n) => `q${n + 10}`)).toBe(20 - 16)
    expect((await lanes.enter('fast', 'p')).granted).toBe(true)
  })

  test('a request in a lane (queue of one destination) counts against the limit of its own project, and not for the project that first used the lane', async () => {
    const lanes = new Lanes(32, MAIL_LIMITS, () => clockMs)
    leave(await lanes.enter('shared', 'p'))
    clockMs += 20_000
    const hanging = Array.from({ length: 9 }, (_, n) => lanes.enter(`new${n}`, 'p'))
    expect(granted(await Promise.all(hanging))).toHaveLength(8)
    expect((await lanes.enter('another', 'p')).granted).toBe(false)
    leave(await lanes.enter('first of p', 'q'))
    expect((await lanes.enter('new8', 'q')).granted).toBe(true)
  })

  test('if several lanes (queues of one destination) begin to hang at once, some slots stay free for other lanes', async () => {
    const lanes = new Lanes(32, MAIL_LIMITS, () => clockMs)
    const names = Array.from({ length: 8 }, (_, n) => `hanging${n}`)
    for (const name of [...names, 'fast']) leave(await lanes.enter(name, 'p'))
    const turns = await Promise.all(
      names.flatMap((name) => Array.from({ length: 10 }, () => lanes.enter(name, 'p'))),
    )
    expect((await lanes.enter('fast', 'p')).granted).toBe(true)
    const others = Array.from({ length: 32 }, (_, n) => lanes.enter(`fast${n}`, `q${n}`))
    const open = [...turns, ...(await Promise.all(others))]
    expect(granted(open).length).toBeGreaterThan(granted(turns).length)
    expect(granted(open).length).toBeLessThan(32)
  })

  test('requests that hang get at most half of the slots, even if their lanes (queues of one destination) were fast before', async () => {
    const lanes = new Lanes(32, MAIL_LIMITS, () => clockMs)
    const names = Array.from({ length: 8 }, (_, n) => `hanging${n}`)
    for (const name of [...names, 'fast']) leave(await lanes.enter(name, 'p'))
    const turns: Turn[] = []
    for (const owner of ['p', 'q', 'r']) {
      for (const name of names) turns.push(await lanes.enter(name, owner))
      clockMs += 2_000
    }
    expect(granted(turns)).toHaveLength(16)
    expect((await lanes.enter('fast', 'p')).granted).toBe(true)
  })

  test('a project without earlier requests gets a slot, even if other projects have many lanes (queues) that hang', async () => {
    const lanes = new Lanes(32, MAIL_LIMITS, () => clockMs)
    const enter = (owner: string) =>
      Promise.all(Array.from({ length: 8 }, (_, n) => lanes.enter(`${owner}${n}`, owner)))
    for (const owner of ['p', 'q', 'r']) await enter(owner)
    expect((await lanes.enter('new', 'third')).granted).toBe(true)
  })
})

describe('if several projects send mail to one domain, no project delays the others for long', () => {
  /** Sets how many milliseconds the simulated mail host takes to accept one mail. */
  const TAKES_MS = 3_000
  const createMailLanes = async () => {
    const lanes = new Lanes(32, MAIL_LIMITS, () => clockMs)
    const first = await lanes.enter('domain', 'many')
    clockMs += TAKES_MS
    leave(first)
    return lanes
  }

  test('the backlog of one project does not delay the few mails of another project', async () => {
    const lanes = await createMailLanes()
    // The project with 3,000 mails requests a slot again as soon as its lane (the queue of one destination) allows
    // this.
    const open: { turn: Turn; endsMs: number; owner: string }[] = []
    const dueMs = Array.from({ length: 3_000 }, () => clockMs)
    const delays: number[] = []
    let few: { askedMs: number; dueMs: number } | null = null
    const ask = async (owner: string) => {
      const asked = lanes.enter('domain', owner)
      const turn = await Promise.race([
        asked,
        new Promise<null>((r) => setImmediate(() => r(null))),
      ])
      if (turn === null) throw new Error('a job of a lane with slow mail must not wait')
      if (turn.granted) open.push({ turn, endsMs: clockMs + TAKES_MS, owner })
      return turn
    }
    const endMs = clockMs + 60_000
    for (; clockMs < endMs; clockMs += 100) {
      for (const one of open.filter(({ endsMs }) => endsMs <= clockMs)) {
        open.splice(open.indexOf(one), 1)
        leave(one.turn)
      }
      for (const [n, at] of dueMs.entries()) {
        if (at > clockMs) continue
        const turn = await ask('many')
        dueMs[n] = turn.granted ? Number.POSITIVE_INFINITY : clockMs + turn.returnInMs
      }
      few ??= { askedMs: clockMs, dueMs: clockMs }
      if (few.dueMs > clockMs) continue
      const turn = await ask('few')
      if (turn.granted) {
        delays.push(clockMs - few.askedMs)
        few = null
      } else few.dueMs = clockMs + turn.returnInMs
    }
    expect(delays.length).toBeGreaterThan(10)
    expect(Math.max(...delays)).toBeLessThan(5_000)
  })

  test('the refused mails of many projects together are retried as rarely as those of one project', async () => {
    const countOf = async (projects: number) => {
      const lanes = await createMailLanes()
      await Promise.all([1, 2].map(() => lanes.enter('domain', 'first')))
      const dueMs = Array.from({ length: 2_000 }, () => clockMs)
      let refused = 0
      const [startMs, endMs] = [clockMs + 60_000, clockMs + 90_000]
      for (; clockMs < endMs; clockMs += 50) {
        for (const [n, at] of dueMs.entries()) {
          if (at > clockMs) continue
          const turn = await lanes.enter('domain', `project ${n % projects}`)
          if (turn.granted) continue
          dueMs[n] = clockMs + turn.returnInMs
          if (clockMs >= startMs) refused++
        }
      }
      return refused / 30
    }
    expect(await countOf(1)).toBeLessThan(12)
    expect(await countOf(100)).toBeLessThan(20)
  })

  test('a project with unsent mail gets all slots for sending again if the other project no longer requests any', async () => {
    const lanes = await createMailLanes()
    const many = await Promise.all(Array.from({ length: 10 }, () => lanes.enter('domain', 'many')))
    expect((await lanes.enter('domain', 'few')).granted).toBe(false)
    leave(many[0]!)
    expect((await lanes.enter('domain', 'many')).granted).toBe(false)
    clockMs += 2_000
    expect((await lanes.enter('domain', 'many')).granted).toBe(true)
  })

  test('mail to a hanging smarthost leaves some job slots free for other work', async () => {
    const lanes = new Lanes(32, MAIL_LIMITS, () => clockMs)
    const turns = await Promise.all(
      Array.from({ length: 32 }, (_, n) => lanes.enter(null, `project ${n}`)),
    )
    expect(granted(turns).length).toBeWithin(16, 25)
  })

  test('a project with a backlog of mail to the smarthost leaves slots for another project that waits', async () => {
    const lanes = new Lanes(32, MAIL_LIMITS, () => clockMs)
    const enter = (owner: string) => lanes.enter(null, owner)
    const many = granted(await Promise.all(Array.from({ length: 32 }, () => enter('many'))))
    clockMs += 40_000
    expect((await enter('few')).granted).toBe(false)
    leave(many[0]!)
    expect((await enter('many')).granted).toBe(false)
    expect((await enter('few')).granted).toBe(true)
    // If a project no longer requests slots for sending, the other project gets all slots.
    leave(many[1]!)
    clockMs += 2_000
    expect((await enter('many')).granted).toBe(true)
  })

  test('if only one project sends mail to a domain, it uses all sending slots of the domain', async () => {
    const lanes = await createMailLanes()
    const turns = await Promise.all(Array.from({ length: 10 }, () => lanes.enter('domain', 'many')))
    expect(granted(turns)).toHaveLength(10)
  })
})

test('after a receiver works again, a newly refused job is retried soon, and not after the jobs that were postponed before', async () => {
  const lanes = createLanes(200)
  const hanging = await Promise.all(Array.from({ length: 4 }, () => lanes.enter('a', 'p')))
  clockMs += 1_000
  for (let n = 0; n < 5_000; n++) await lanes.enter('a', 'p')
  for (const turn of hanging) leave(turn)
  for (let n = 0; n < 40; n++) {
    const turn = await lanes.enter('a', 'p')
    clockMs += 20
    leave(turn)
  }
  const burst = await Promise.all(Array.from({ length: 400 }, () => lanes.enter('a', 'p')))
  const returns = burst.flatMap((turn) => (turn.granted ? [] : [turn.returnInMs]))
  expect(returns.length).toBeGreaterThan(0)
  expect(Math.max(...returns)).toBeLessThan(5_000)
})

test('a lane (the queue of one destination) counts as slow only if its requests take longer than the limit', async () => {
  for (const [ms, places] of [
    [500, 32],
    [501, SLOW_CAP],
  ] as const) {
    const lanes = createLanes(200)
    const turn = await lanes.enter('a', 'p')
    clockMs += ms
    leave(turn)
    const turns = await Promise.all(Array.from({ length: 32 }, () => lanes.enter('a', 'p')))
    expect([ms, granted(turns).length]).toEqual([ms, places])
  }
})

test('a mail waits until another request to its domain ends, unless an open request to the domain takes longer than a second', async () => {
  const outcome = async (ageMs: number) => {
    const lanes = new Lanes(32, MAIL_LIMITS, () => clockMs)
    const first = await lanes.enter('domain', 'p')
    clockMs += 500
    leave(first)
    const open = await Promise.all(Array.from({ length: 10 }, () => lanes.enter('domain', 'p')))
    clockMs += ageMs
    const asked = lanes.enter('domain', 'p')
    leave(open[0]!)
    return (await asked).granted
  }
  expect([await outcome(1_000), await outcome(1_001)]).toEqual([true, false])
})

test('a project with open requests leaves the last tenth of the job slots to other projects', async () => {
  const lanes = createLanes(40)
  const turns: Turn[] = []
  for (let n = 0; n < 40; n++) turns.push(await lanes.enter(`lane ${n}`, 'p'))
  // Four of the 40 job slots are reserved for work that contacts no receiver, and four for projects without an open
  // request. Therefore this project gets 32 job slots.
  expect(granted(turns)).toHaveLength(32)
  const others = Array.from({ length: 5 }, (_, n) => lanes.enter(`other ${n}`, `q${n}`))
  expect(granted(await Promise.all(others))).toHaveLength(4)
})

test('a process that knows ten thousand lanes (queues of one destination) forgets the speed of idle lanes, but not of lanes with requests', async () => {
  const lanes = createLanes(200)
  for (const name of ['idle', 'other idle', 'busy']) await makeSlow(lanes, name, 'p')
  const open = await Promise.all(Array.from({ length: SLOW_CAP }, () => lanes.enter('busy', 'p')))
  expect(granted(open)).toHaveLength(SLOW_CAP)
  for (let n = 3; n < 10_000; n++) leave(await lanes.enter(`lane ${n}`, 'q'))
  const places = async (name: string) => {
    const turns = await Promise.all(
      Array.from({ length: SLOW_CAP + 1 }, () => lanes.enter(name, 'q')),
    )
    for (const turn of turns) leave(turn)
    return granted(turns).length
  }
  expect([await places('idle'), await places('busy')]).toEqual([SLOW_CAP, 0])
  leave(await lanes.enter('one more', 'q'))
  expect([await places('other idle'), await places('busy')]).toEqual([SLOW_CAP + 1, 0])
})

test('the checks of payments occupy at most half of the job slots, and the checks of one project at most six job slots', async () => {
  const lanes = new Lanes(32, CHECK_LIMITS, () => clockMs)
  const enter = (project: string) =>
    Promise.all(Array.from({ length: 32 }, () => lanes.enter(`check:${project}`, project)))
  const first = await enter('p')
  expect(granted(first)).toHaveLength(6)
  // A refused check releases its slot (the right to run a job) at once, although its lane (the queue of one
  // destination) is fast.
  expect(first.filter((turn) => !turn.granted).length).toBe(26)
  const others = await Promise.all(Array.from({ length: 20 }, (_, n) => enter(`q${n}`)))
  expect(granted(others[0]!).length).toBeGreaterThan(0)
  expect(granted([...first, ...others.flat()])).toHaveLength(15)
})
