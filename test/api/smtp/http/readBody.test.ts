import { expect, test } from 'bun:test'
import { readBody } from '../../../../api/smtp/http/readBody.ts'

async function* arriving(chunks: number, everyMs: number) {
  for (let n = 0; n < chunks; n++) {
    if (n > 0) await Bun.sleep(everyMs)
    yield new Uint8Array(10)
  }
}
const failure = (work: Promise<unknown>) => work.then(() => null).catch((error: Error) => error)

test('a body is read to its end, unless it is too long or arrives too slowly', async () => {
  expect((await readBody(arriving(3, 0), 30)).length).toBe(30)
  expect(await failure(readBody(arriving(4, 0), 30))).toMatchObject({ responseCode: 552 })
  expect(await failure(readBody(arriving(3, 40), 30, 10))).toMatchObject({
    responseCode: 451,
    message: expect.stringContaining('too slowly'),
  })
})
