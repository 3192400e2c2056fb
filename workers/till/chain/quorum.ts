/**
 * Combines several chain nodes into one client, which accepts a reply once `quorum` nodes give the same reply. The
 * quorum stays the same even if some chain nodes do not respond. A chain node that has not seen a block or receipt yet
 * only lags behind, and does not count as lying.
 */
import { numberToHex } from 'viem'
import { keyOfAnswer, QUANTITIES } from './ballot.ts'
import { type Rpc, type RpcAnswer, type RpcCall, RpcTimeout, RpcTrouble } from './rpc.ts'

/**
 * Rates the reply of a chain node. The rating `none` means that the chain node gave no reply. The rating `behind` means
 * that the chain node has not seen the block or receipt yet.
 */
export type NodeOutcome = 'agrees' | 'behind' | 'differs' | 'none'

/** Describes a chain node with its name. Logs and metrics show the name of the node, which is the host of its URL. */
export type Node = { name: string; rpc: Rpc }

type Options = {
  nodes: readonly Node[]
  quorum: number
  observe?: (name: string, outcome: NodeOutcome) => void
}

/**
 * Limits how many milliseconds the quorum waits for slow chain nodes that responded to the last request. Without this
 * wait, a fast node that lags behind the chain could decide alone.
 */
const GRACE_MS = 150

/** Holds the replies of one chain node to the calls of one request. */
type Ballot = { node: number; answers: readonly RpcAnswer[] }

/**
 * Names the stage of a vote among several chain nodes. At the stage `grace`, the chain nodes that have replied may
 * decide without the slow nodes. The stage `last` means that every chain node has replied or failed, so that no further
 * reply comes.
 */
type Stage = 'open' | 'grace' | 'last'

/** Creates a client that asks all chain nodes and returns the replies on which a quorum agrees. */
export function createQuorumRpc({ nodes, quorum, observe = () => {} }: Options): Rpc {
  /** Tells for each chain node whether the node responded to the last request. */
  const isThere = nodes.map(() => true)
  const expected = () => Math.max(quorum, isThere.filter(Boolean).length)

  /**
   * Sends the JSON-RPC calls to every chain node. The function `decide` gets the replies that have arrived so far, and
   * returns `undefined` until enough nodes have replied.
   */
  function ask<Result>(
    calls: readonly RpcCall[],
    decide: (ballots: readonly Ballot[], stage: Stage) => Result | undefined,
    late: (ballot: Ballot, result: Result) => void = () => {},
  ): Promise<Result> {
    return new Promise((resolve, reject) => {
      const ballots: Ballot[] = []
      const troubles: string[] = []
      let result: Result | undefined
      let timer: ReturnType<typeof setTimeout> | undefined
      const count = (stage: Stage) => {
        if (result !== undefined) return
        const isLast = ballots.length + troubles.length === nodes.length
        result = decide(ballots, isLast ? 'last' : stage)
        if (result !== undefined) resolve(result)
        else if (isLast) reject(noQuorum(calls[0]!, ballots, troubles))
        else {
          if (ballots.length >= quorum) timer ??= setTimeout(() => count('grace'), GRACE_MS)
          return
        }
        clearTimeout(timer)
      }
      for (const [node, { name, rpc }] of nodes.entries()) {
        rpc.batch(calls).then(
          (answers) => {
            isThere[node] = true
            const ballot = { node, answers }
            if (result !== undefined) return late(ballot, result)
            ballots.push(ballot)
            count('open')
          },
          (error: unknown) => {
            isThere[node] = false
            observe(name, 'none')
            const detail = error instanceof RpcTrouble ? error.message : 'it failed'
            troubles.push(`${name}: ${detail}`)
            count('open')
          },
        )
      }
    })
  }

  function noQuorum(
    { method }: RpcCall,
    ballots: readonly Ballot[],
    troubles: readonly string[],
  ): RpcTrouble {
    const answered = ballots.map(({ node }) => `${nodes[node]!.name}: another answer`)
    const all = [...answered, ...troubles].join('; ')
    const message = `${method}: fewer than ${quorum} of ${nodes.length} RPCs agree (${all})`
    const isSlow = troubles.some((trouble) => trouble.endsWith('timed out'))
    return isSlow ? new RpcTimeout(message) : new RpcTrouble(message)
  }

  /** Rates one chain node by comparing its replies with the replies on which the quorum agreed. */
  function judge(calls: readonly RpcCall[], { node, answers }: Ballot, decided: RpcAnswer[]): void {
    let worst: NodeOutcome = 'agrees'
    for (const [n, { method }] of calls.entries()) {
      if (QUANTITIES.has(method) || method === SEND) continue
      const [own, wanted] = [keyOfAnswer(method, answers[n]!), keyOfAnswer(method, decided[n]!)]
      if (own === wanted) continue
      if (own !== 'unseen' && own !== null && wanted !== 'unseen') worst = 'differs'
      else if (worst === 'agrees') worst = 'behind'
    }
    observe(nodes[node]!.name, worst)
  }

  /**
   * Returns the reply to one call on which the quorum agreed. Returns `undefined` if too few chain nodes have given
   * this reply.
   */
  function decideOne(
    { method }: RpcCall,
    answers: readonly RpcAnswer[],
    stage: Stage,
  ): RpcAnswer | undefined {
    if (method === SEND) return decideSent(answers, stage)
    if (QUANTITIES.has(method)) return decideQuantity(answers, stage)
    const votes = Map.groupBy(answers, (answer) => keyOfAnswer(method, answer))
    for (const [key, voters] of votes) {
      if (key !== null && voters.length >= quorum) return voters[0]
    }
    if (stage === 'open' || answers.length < quorum) return undefined
    // Enough chain nodes have replied. If too few of them have seen the block or receipt, the quorum replies that the
    // block or receipt does not exist yet.
    const unseen = votes.get('unseen')
    if (unseen !== undefined) return unseen[0]
    // If a call fails at a quorum of chain nodes, these nodes agree about the failure, so the failure counts as the
    // reply.
    const faults = votes.get(null) ?? []
    return faults.length >= quorum ? faults[0] : undefined
  }

  /**
   * Decides whether a transaction was sent to the chain. One chain node that accepts a transaction is enough, because
   * this node forwards it to other nodes. Therefore a transaction counts as refused only if a quorum of nodes refuses
   * it.
   */
  function decideSent(answers: readonly RpcAnswer[], stage: Stage): RpcAnswer | undefined {
    const taken = answers.find((answer) => answer.ok || KNOWN.test(answer.message))
    return taken ?? (answers.length >= quorum || stage === 'last' ? answers[0] : undefined)
  }

  /**
   * Decides on one number, such as a count or a fee, that may differ between the chain nodes. Returns the largest value
   * that the replies of at least `quorum` nodes reach or exceed.
   */
  function decideQuantity(answers: readonly RpcAnswer[], stage: Stage): RpcAnswer | undefined {
    if (stage === 'open' && answers.length < expected()) return undefined
    const values = answers
      .flatMap((answer) => {
        const value = answer.ok ? quantityOf(answer.result) : null
        return value === null ? [] : [{ answer, value }]
      })
      .toSorted((one, other) => highestFirst(one.value, other.value))
    const reached = values[quorum - 1]
    if (reached !== undefined) return reached.answer
    const refused = answers.filter(({ ok }) => !ok)
    return refused.length >= quorum ? refused[0] : undefined
  }

  function batch(calls: readonly RpcCall[]): Promise<RpcAnswer[]> {
    if (calls.length === 0) return Promise.resolve([])
    return ask(
      calls,
      (ballots, stage) => {
        const decided: RpcAnswer[] = []
        for (const [n, call] of calls.entries()) {
          const answers = ballots.map((ballot) => ballot.answers[n]!)
          const answer = decideOne(call, answers, stage)
          if (answer === undefined) return undefined
          decided.push(answer)
        }
        for (const ballot of ballots) judge(calls, ballot, decided)
        return decided
      },
      (ballot, decided) => judge(calls, ballot, decided),
    )
  }

  /**
   * Returns the newest block that at least `quorum` chain nodes have reached. A chain node that is far ahead, or far
   * behind, does not change the result.
   */
  async function newest(tag: 'latest' | 'finalized'): Promise<unknown> {
    const heights = await ask(
      [{ method: 'eth_getBlockByNumber', params: [tag, false] }],
      (ballots, stage) => {
        const known = ballots.flatMap(({ answers: [answer] }) => heightOf(answer) ?? [])
        if (stage === 'open' && ballots.length < expected()) return undefined
        return ballots.length < quorum ? undefined : known.toSorted(highestFirst)
      },
    )
    const height = heights[quorum - 1]
    // Too few chain nodes returned a block for the block tag (such as "latest"). Therefore the quorum knows no such
    // block.
    if (height === undefined) return null
    return await single('eth_getBlockByNumber', [numberToHex(height), false])
  }

  async function single(method: string, params: readonly unknown[]): Promise<unknown> {
    const [answer] = await batch([{ method, params }])
    if (answer?.ok) return answer.result
    throw new RpcTrouble(`${method}: ${answer?.message ?? 'no answer'}`)
  }

  return {
    batch,
    call: (method, params) =>
      method === 'eth_getBlockByNumber' && (params[0] === 'latest' || params[0] === 'finalized')
        ? newest(params[0])
        : single(method, params),
  }
}

const SEND = 'eth_sendRawTransaction'
const KNOWN = /already (known|imported)|known transaction/i

const quantityOf = (value: unknown): bigint | null =>
  typeof value === 'string' && /^0x[0-9a-f]{1,64}$/i.test(value) ? BigInt(value) : null

const highestFirst = (one: bigint, other: bigint): number => Number(other - one)

/** Returns the block number in a chain node's reply. Returns `null` if the reply contains no block. */
function heightOf(answer: RpcAnswer | undefined): bigint | null {
  const block = answer?.ok ? answer.result : null
  return quantityOf((block as { number?: unknown } | null)?.number)
}
