import { expect, test } from 'bun:test'
import { enterLargeMail } from '../../../../api/smtp/http/largeMailTurn.ts'
import { FairTurns } from '../../../../shared/fair/fairTurns.ts'

test('a large mail over HTTP gets the temporary error 451 if too many large mails wait, and an unexpected error is passed on unchanged', async () => {
  const turns = new FairTurns({ total: 1, perSharer: 1, waitingPerSharer: 0 })
  const leave = await enterLargeMail(turns, 'a')
  await expect(enterLargeMail(turns, 'a')).rejects.toMatchObject({ responseCode: 451 })
  leave()
  ;(await enterLargeMail(turns, 'a'))()
  const fault = new Error('broken')
  const broken = { enter: () => Promise.reject(fault) } as unknown as FairTurns
  await expect(enterLargeMail(broken, 'a')).rejects.toBe(fault)
})
