/** Tests how the service reads receipts from a chain node that cannot send all of them in one response. */
import { describe, expect, test } from 'bun:test'
import { type Hex, numberToHex, pad } from 'viem'
import {
  type Rpc,
  type RpcAnswer,
  RpcTimeout,
  RpcTrouble,
} from '../../../../workers/till/chain/rpc.ts'
import {
  readReceipts,
  readStrangersReceipts,
} from '../../../../workers/till/chain/transactionReceipts.ts'

const hashOf = (n: number): Hex => pad(numberToHex(n), { size: 32 })
const hashes = (count: number) => Array.from({ length: count }, (_, n) => hashOf(n))
const receiptOf = (hash: Hex) => ({
  transactionHash: hash,
  status: '0x1',
  blockNumber: '0x2',
  blockHash: hashOf(0xb),
  gasUsed: '0x5208',
  logs: [],
})
const TOO_LARGE = { ok: false, code: -32003, message: 'response too large', data: null } as const

/**
 * Creates a chain node whose responses have a maximum size of `most` units, because geth has such a limit too. The
 * receipt of a transaction has the size `sizeOf(hash)` units.
 */
function nodeWith(most: number, sizeOf: (hash: Hex) => number) {
  const requests: number[] = []
  const rpc: Rpc = {
    call: () => expect.unreachable(),
    async batch(calls) {
      requests.push(calls.length)
      let sent = 0
      return calls.map(({ params }) => {
        const hash = params[0] as Hex
        sent += sizeOf(hash)
        return sent > most ? TOO_LARGE : { ok: true, result: receiptOf(hash) }
      })
    },
  }
  return { rpc, requests }
}
const hashesOf = (receipts: readonly ({ transactionHash: Hex } | null | undefined)[]) =>
  receipts.map((receipt) => receipt?.transactionHash)

describe('if a chain node limits the size of a response, the service reads the receipts in several requests', () => {
  test('receipts that are too large together are read in several requests', async () => {
    const { rpc, requests } = nodeWith(25, (hash) => (BigInt(hash) % 5n === 0n ? 10 : 1))
    expect(hashesOf(await readReceipts(rpc, hashes(40)))).toEqual(hashes(40))
    expect(requests.length).toBeLessThan(10)
    const small = nodeWith(1_000, () => 1)
    await readReceipts(small.rpc, [...hashes(40), ...hashes(40)])
    expect(small.requests).toEqual([40])
  })

  test('if the node can never send one receipt, only the read of this receipt fails', async () => {
    const { rpc } = nodeWith(25, (hash) => (hash === hashOf(7) ? 26 : 10))
    const expected = hashes(30).map((hash) => (hash === hashOf(7) ? undefined : hash))
    expect(hashesOf(await readStrangersReceipts(rpc, hashes(30)))).toEqual(expected)
    const error = await readReceipts(rpc, hashes(30)).catch((thrown: unknown) => thrown)
    expect(error).toBeInstanceOf(RpcTrouble)
    expect((error as Error).message).toContain('response too large')
  })

  test('if the chain node needs too long for many receipts, they are read with fewer receipts in each request', async () => {
    const { rpc, requests } = nodeWith(1_000, () => 1)
    const slow: Rpc = {
      ...rpc,
      batch: async (calls) => {
        if (calls.length > 4) throw new RpcTimeout('timed out')
        return rpc.batch(calls)
      },
    }
    expect(hashesOf(await readStrangersReceipts(slow, hashes(9)))).toEqual(hashes(9))
    expect(requests).toEqual(Array.from({ length: 9 }, () => 1))
    requests.length = 0
    expect(hashesOf(await readReceipts(slow, hashes(9)))).toEqual(hashes(9))
    expect(requests).toEqual([3, 3, 3])
  })

  /** Creates a chain node that sends one receipt too slowly. The node responds to other calls only if it is `up`. */
  function nodeSlowAt(hash: Hex, { up }: { up: boolean }) {
    const node = nodeWith(1_000, () => 1)
    const asked: number[] = []
    const rpc: Rpc = {
      async call() {
        if (!up) throw new RpcTimeout('timed out')
        return '0x1'
      },
      async batch(calls) {
        asked.push(calls.length)
        if (calls.some(({ params }) => params[0] === hash)) throw new RpcTimeout('timed out')
        return node.rpc.batch(calls)
      },
    }
    return { rpc, asked }
  }

  test('if a chain node that is up needs too long for one receipt, the other receipts are read, and the slow receipt is not asked for again', async () => {
    const hash = hashOf(0x5105)
    const all = [...hashes(4), hash]
    const { rpc, asked } = nodeSlowAt(hash, { up: true })
    for (const requests of [[5, 1, 1, 1, 1, 1], [4]]) {
      asked.length = 0
      expect(hashesOf(await readStrangersReceipts(rpc, all))).toEqual([...hashes(4), undefined])
      expect(asked).toEqual(requests)
    }
  })

  test('if the node needs too long for one receipt and for another call, the read of all receipts fails', async () => {
    const { rpc } = nodeSlowAt(hashOf(5), { up: false })
    await expect(readStrangersReceipts(rpc, hashes(9))).rejects.toThrow('timed out')
  })

  test('if the node needs too long for one receipt of this service’s own transactions, the read of all receipts fails', async () => {
    const { rpc } = nodeSlowAt(hashOf(5), { up: true })
    await expect(readReceipts(rpc, hashes(9))).rejects.toThrow('timed out')
  })

  test('if the chain node refuses one receipt, the other receipts of the list are still read, whatever the error and the position of the receipt are', async () => {
    const saying = (code: number, message: string) => (): RpcAnswer => {
      if (code === 413) throw new RpcTrouble('HTTP 413')
      return { ok: false, code, message, data: null }
    }
    for (const [bad, refuse] of [
      [0, saying(-32000, 'request timed out')],
      [8, saying(-32603, 'internal error')],
      [0, saying(413, '')],
    ] as const) {
      const node = nodeWith(1_000, () => 1)
      const picky: Rpc = {
        ...node.rpc,
        batch: async (calls) => {
          if (!calls.some(({ params }) => params[0] === hashOf(bad))) return node.rpc.batch(calls)
          return calls.map(refuse)
        },
      }
      const expected = hashes(9).map((hash) => (hash === hashOf(bad) ? undefined : hash))
      expect(hashesOf(await readStrangersReceipts(picky, hashes(9)))).toEqual(expected)
      expect(await readStrangersReceipts(picky, [hashOf(bad)])).toEqual([undefined])
    }
  })

  test('a chain node that limits the rate of requests gets only one request', async () => {
    let asked = 0
    const limited: Rpc = {
      call: () => expect.unreachable(),
      batch: async (calls) => {
        asked++
        return calls.map(() => ({
          ok: false,
          code: 429,
          message: 'rate limit exceeded',
          data: null,
        }))
      },
    }
    for (const readAll of [readReceipts, readStrangersReceipts]) {
      asked = 0
      await expect(readAll(limited, hashes(40))).rejects.toThrow('rate limit exceeded')
      expect(asked).toBe(1)
    }
  })

  test('if a chain node does not respond, the read of all receipts fails, and the node gets no more requests', async () => {
    const asked: number[] = []
    const silent: Rpc = {
      call: () => expect.unreachable(),
      batch: async (calls) => {
        asked.push(calls.length)
        throw new RpcTrouble('not reachable')
      },
    }
    await expect(readStrangersReceipts(silent, hashes(9))).rejects.toThrow('not reachable')
    expect(asked).toEqual([9])
  })

  test('a transaction without a receipt has the value null in the list of read receipts, and an empty list of transactions causes no request', async () => {
    const rpc: Rpc = {
      call: () => expect.unreachable(),
      batch: async (calls) => calls.map(() => ({ ok: true, result: null })),
    }
    expect(await readReceipts(rpc, [hashOf(1)])).toEqual([null])
    expect(await readReceipts({ ...rpc, batch: () => expect.unreachable() }, [])).toEqual([])
  })
})
