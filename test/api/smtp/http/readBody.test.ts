import { expect, test } from 'bun:test'
import { readBody } from '../../../../api/smtp/http/readBody.ts'

async function* arriving(chunks: number) {
  for (let n = 0; n < chunks; n++) yield new Uint8Array(10)
}
const failure = (work: Promise<unknown>) => work.then(() => null).catch((error: Error) => error)

test('the body of an HTTP delivery is read to its end, and refused if it is too long', async () => {
  expect((await readBody(arriving(3), 30)).length).toBe(30)
  expect(await failure(readBody(arriving(4), 30))).toMatchObject({ responseCode: 552 })
})
